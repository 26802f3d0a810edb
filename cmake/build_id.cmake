# Writes OUTPUT, a C++ file that defines the build id: version and a digest over every source file of kc.
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/core/*.cpp ${ROOT}/core/*.h ${ROOT}/cli/*.cpp ${ROOT}/cli/*.h)
list(SORT sources)
set(all "")
foreach(source ${sources})
  file(SHA256 ${ROOT}/${source} digest)
  string(APPEND all "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUTPUT}.new
     "namespace kc::engine {\nconst char* build_id();\nconst char* build_id() { return \"${VERSION}+${digest}\"; }\n}  // namespace kc::engine\n")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT})

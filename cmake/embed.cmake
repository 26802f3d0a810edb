# Writes OUTPUT, a C++ file that defines FUNCTION of HEADER: `std::string_view FUNCTION()` in NAMESPACE gives the bytes
# of INPUT, a text of ASCII. In pieces, since a compiler need not take a literal of more than 64 KiB.
file(READ "${INPUT}" text)
if(NOT text MATCHES "^[\t\n -~]*$")
  message(FATAL_ERROR "${INPUT} holds bytes that are not printable ASCII")
endif()
string(FIND "${text}" ")embed\"" end)
if(NOT end EQUAL -1)
  message(FATAL_ERROR "${INPUT} holds )embed\", which ends the literals that it becomes")
endif()

string(LENGTH "${text}" size)
set(pieces "")
set(at 0)
while(at LESS size)
  string(SUBSTRING "${text}" ${at} 16384 piece)
  string(APPEND pieces "\n    R\"embed(${piece})embed\"")
  math(EXPR at "${at} + 16384")
endwhile()
if(size EQUAL 0)
  set(pieces " \"\"")
endif()
file(WRITE "${OUTPUT}"
     "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nstd::string_view ${FUNCTION}() {\n"
     "  static constexpr char kText[] =${pieces};\n"
     "  return {kText, sizeof kText - 1};\n}\n\n}  // namespace ${NAMESPACE}\n")

# kc_stub_driver(<api> <file name> <object library> <symbol>...): build/lib/stub/<api>/<file name>, and one
# build/lib/stub/<api>_without_<symbol>/<file name> for each symbol, which has all others. The libraries are never
# sanitized, so that programs without a sanitizer can load them too.
function(kc_stub_driver api file objects)
  string(REGEX REPLACE "\\.so\\..*$" "" name ${file})
  string(REGEX REPLACE "^lib" "" name ${name})
  string(REGEX REPLACE "^.*\\.so" "" suffix ${file})
  foreach(missing "" ${ARGN})
    set(variant ${api})
    set(soname ${file})
    if(missing)
      # Not the driver's soname: one that is loaded by its path would answer for the other in a search by name.
      set(variant ${api}_without_${missing})
      set(soname ${variant})
    endif()
    set(map ${CMAKE_CURRENT_BINARY_DIR}/${variant}.map)
    set(kept kc_stub_* ${ARGN})
    list(REMOVE_ITEM kept "${missing}")
    list(JOIN kept ";\n    " kept)
    file(CONFIGURE OUTPUT ${map} CONTENT "{\n  global:\n    ${kept};\n  local:\n    *;\n};\n" @ONLY)
    add_library(stub_${variant} SHARED $<TARGET_OBJECTS:${objects}>)
    set_target_properties(stub_${variant} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${name} SUFFIX .so${suffix}
                          NO_SONAME ON LINK_DEPENDS ${map}
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/stub/${variant})
    target_link_options(stub_${variant} PRIVATE -Wl,--version-script=${map} -Wl,-soname,${soname} -Wl,-z,defs)
    add_dependencies(stub_drivers stub_${variant})
  endforeach()
endfunction()

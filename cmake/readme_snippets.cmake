# Compiles every ```cpp block of README.md: all in one file, for phiattn.hpp alone takes longer than any of them, each
# in a namespace of its own, with its #include lines put first. A block with `int main`, or with a class or template at
# its left edge, stands as it is. Any other is the body of a function that knows q, k, v and out.
set(readme ${PROJECT_SOURCE_DIR}/README.md)
if(NOT EXISTS ${readme})
  return()
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${readme})

file(READ ${readme} rest)
set(fence "\n```cpp")
set(head "#include <phiattn/phiattn.hpp>")
set(blocks)
set(number 0)
while(TRUE)
  string(FIND "${rest}" "${fence}\n" begin)
  if(begin EQUAL -1)
    break()
  endif()
  string(LENGTH "${fence}" length)
  math(EXPR begin "${begin} + ${length}")
  string(SUBSTRING "${rest}" ${begin} -1 rest)
  string(FIND "${rest}" "\n```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  string(SUBSTRING "${rest}" ${end} -1 rest)

  string(REGEX MATCHALL "\n#include[^\n]*" includes "${block}")
  string(REGEX REPLACE "\n#include[^\n]*" "" block "${block}")
  string(APPEND head ${includes})
  if(NOT block MATCHES "\n(int main|(template|struct|class) ?)")
    set(matrix "phiattn::Matrix<float>&")
    string(PREPEND block
      "\nnamespace pa = phiattn;"
      "\nvoid snippet(const ${matrix} q, const ${matrix} k, const ${matrix} v, ${matrix} out) {\n{")
    string(APPEND block "\n}\n}")
  endif()
  math(EXPR number "${number} + 1")
  string(APPEND blocks "\n\nnamespace block_${number} {${block}\n}")
endwhile()

if(blocks)
  set(snippets ${CMAKE_CURRENT_BINARY_DIR}/readme_snippets.cpp)
  file(CONFIGURE OUTPUT ${snippets} CONTENT "@head@@blocks@\n" @ONLY)
  add_library(phiattn_readme OBJECT ${snippets})
  target_compile_options(phiattn_readme PRIVATE -O0) # never run
  target_link_libraries(phiattn_readme PRIVATE phiattn::phiattn)
endif()

# Run by CTest: cmake -DSOURCE=… -DDOCUMENT=… -P documented.cmake. The document shows the whole source, as it is.
file(READ ${SOURCE} source)
file(READ ${DOCUMENT} document)
string(FIND "${document}" "```c\n${source}```" place)
if(source STREQUAL "" OR place EQUAL -1)
  message(FATAL_ERROR "${DOCUMENT} does not show ${SOURCE} as it is now")
endif()

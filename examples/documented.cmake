# cmake -DSOURCE=… -DLANGUAGE=c -DPAGE=… -P documented.cmake, or included. Checks that the page shows the whole source.
file(READ ${SOURCE} source)
file(READ ${PAGE} page)
string(FIND "${page}" "```${LANGUAGE}\n${source}```" place)
if(source STREQUAL "" OR place EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show ${SOURCE} as it is now")
endif()

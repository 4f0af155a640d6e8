// Part of the library if it is built to count executed lines (TUFF_COVERAGE).
extern "C" {

void __gcov_dump();

// Adds the counts so far to the files, for processes that end by _Exit.
__attribute__((visibility("default"))) void tuff_coverage_dump() { __gcov_dump(); }
}

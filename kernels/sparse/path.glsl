// The merge path through rows and entries (Merrill and Garland, "Merge-based parallel sparse matrix-vector
// multiplication", 2016). A path through a matrix takes a step for each entry, and one for the end of each row after the
// row's entries. Cut into chunks of as many steps, it gives each lane the same work, whatever the rows' lengths:
//
//   row 0: a b   row 1: (none)   row 2: c d e        path: a b | end | end c | d e | end     chunks of 2 steps
//
// The kernel that includes this file has operand O, the offsets, and the variables path_rows and path_nnz. TUFF_EMPTY 1:
// there are no entries, and no offsets.
#if TUFF_EMPTY
TUFF_INDEX offset(TUFF_INDEX row) { return TUFF_INDEX(0); }
#else
TUFF_INDEX offset(TUFF_INDEX row) { return clamped(NAME_AT(O, row), path_nnz); }
#endif

// The rows that have ended and the entries that have been taken after `steps` steps. Whatever the offsets are, row is at
// most path_rows and entry at most path_nnz.
void path_at(TUFF_INDEX steps, out TUFF_INDEX row, out TUFF_INDEX entry) {
  TUFF_INDEX low = steps > path_nnz ? steps - path_nnz : TUFF_INDEX(0), high = min(steps, path_rows);
  while (low < high) {
    const TUFF_INDEX middle = (low + high) / 2;
    if (offset(middle + 1) <= steps - middle - 1) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  row = low;
  entry = steps - low;
}

// Element i of the values of a matrix in BSR: push has block_rows, block_columns, row_stride and column_stride.
struct BlockElement {
  uint block, row, column;  // the latter in the block
};

BlockElement element_of(uint i) {
  const uint elements = push.block_rows * push.block_columns;
  BlockElement at;
  at.block = i / elements;
  const uint within = i - at.block * elements;
  const bool by_rows = push.column_stride == 1u && push.row_stride == push.block_columns;
  const uint length = by_rows ? push.block_columns : push.block_rows, line = within / length;
  at.row = by_rows ? line : within - line * length;
  at.column = by_rows ? within - line * length : line;
  return at;
}

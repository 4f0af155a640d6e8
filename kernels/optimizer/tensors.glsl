// Which tensor of a list a workgroup works on, and which part of it.
//# TUFF_LIST : 0|1 : 1: there are several tensors, of push.n entries in the table; 0: one, of push.n elements
//
// A tensor of n elements is walked in blocks of W = TUFF_ELEMENTS (blocks.glsl), push.run of them for each lane: lane l of
// its workgroup g has blocks g * run * lanes + l, and so on in steps of `lanes`. The last workgroup takes the elements
// that are not a whole block, too. An entry of the table is a tensor's elements, and where its workgroups end in the
// dispatch. Where they begin, the one before it says.
//
//   workgroups   0 1 2 | 3 | 4 5 | …        the tensors of each
//
// The including shader declares a push block with n, groups (of the dispatch) and run, and defines TUFF_TABLE_SLOT.
#if TUFF_LIST
TUFF_READ(TUFF_TABLE_SLOT, Entries, uvec2, 8)
#endif

struct Share {
  uint tensor, elements;
  uint first;        // block of this workgroup's first lane
  uint group, last;  // the workgroup's number in the tensor, and the number of the last one
};

// The same for all invocations of a workgroup.
Share share_of(uint group) {
  Share share;
  share.tensor = 0;
#if TUFF_LIST
  uint below = 0, above = push.n;
  [[dont_unroll]] while (below < above) {
    const uint middle = (below + above) / 2;
    if (TUFF_AT(Entries, middle).y <= group) {
      below = middle + 1;
    } else {
      above = middle;
    }
  }
  share.tensor = below;
  const uvec2 entry = TUFF_AT(Entries, below);
  const uint start = below > 0 ? TUFF_AT(Entries, max(below, 1) - 1).y : 0u;
  share.elements = entry.x;
  share.group = group - start;
  share.last = entry.y - start - 1;
#else
  share.elements = push.n;
  share.group = group;
  share.last = push.groups - 1;
#endif
  share.first = share.group * push.run * gl_WorkGroupSize.x;
  return share;
}

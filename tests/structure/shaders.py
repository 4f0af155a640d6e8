"""Runs cmake/shaders.py on small shaders: shaders.py ROOT [tests…]. What C++ gets from them, and what is refused."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
PUSH = "layout(push_constant, std430) uniform Push {\n  TUFF_BASES(2)\n  uint n;\n} push;\n"


class Shaders(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def run_on(self, shader, **included):
        """The process, for a shader `sample`; included: the texts of .glsl files beside it."""
        for name, text in {"sample.comp": shader, **{f"{name}.glsl": text for name, text in included.items()}}.items():
            (self.root / name).write_text(text)
        return subprocess.run([sys.executable, ROOT / "cmake/shaders.py", self.root, self.root / "out",
                               self.root / "sample.comp"], capture_output=True, text=True, check=False)

    def made(self, shader, header="sample", **included):
        result = self.run_on(shader, **included)
        self.assertEqual(result.returncode, 0, result.stderr)
        return (self.root / "out/shaders" / f"{header}.hpp").read_text()

    def refused(self, shader, why):
        result = self.run_on(shader)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"sample.comp: error: {why}", result.stderr)

    def test_a_define_becomes_a_field(self):
        header = self.made("//# TUFF_WIDTH = 4 : 1|4 : elements\n//# ROWS : 1.. : of a tile\n" + PUSH)
        self.assertIn("RequiredDefine rows;  // of a tile", header)
        self.assertIn("int64_t width = 4;  // elements", header)
        self.assertIn('kernel.define("ROWS", defines.rows.value);', header)
        self.assertIn('kernel.define("TUFF_WIDTH", defines.width);', header)

    def test_an_included_file_declares_for_the_shader(self):
        header = self.made('#include "common.glsl"\n' + PUSH,
                           common="//# TUFF_TYPE : 1..3 : as in tuff.h\n#if TUFF_TYPE\n#endif\n")
        self.assertIn("RequiredDefine type;", header)

    def test_a_push_block_with_conditions_is_a_template(self):
        header = self.made("//# WHOLE : 0|1 : said here\n"
                           "layout(push_constant, std430) uniform Push {\n#if WHOLE\n  TUFF_BASES(2)\n#else\n"
                           "  TUFF_BASES(1)\n  TUFF_INDEX stride;\n#endif\n  uint n[2];\n} push;\n")
        self.assertIn("template <typename Index, bool whole>\nstruct Push;", header)
        self.assertIn("struct Push<Index, false> {\n  Index stride = {};\n  uint32_t n[2] = {};\n};", header)
        self.assertIn("struct Push<Index, true> {\n  uint32_t n[2] = {};\n};", header)

    def test_a_push_block_of_several_shaders_has_a_header(self):
        header = self.made('//# ROWS : 1.. : of a tile\n#include "common.glsl"\n', "common", common=PUSH)
        self.assertIn("namespace tuff::shaders::common_push {", header)
        self.assertIn('#include "shaders/common.hpp"', (self.root / "out/shaders/sample.hpp").read_text())

    def test_a_struct_in_memory(self):
        header = self.made("//# struct Shape\n#define SIZES uint rows, /* of q */ \\\n  cols;\n"
                           "struct Shape {\n  TUFF_INDEX stride;  // in elements\n  SIZES\n};\n" + PUSH)
        self.assertIn("template <typename Index>\nstruct Shape {\n  Index stride = {};\n"
                      "  uint32_t rows = {};\n  uint32_t cols = {};\n};", header)

    def test_a_struct_in_memory_without_indices_lies_as_the_kernel_reads_it(self):
        header = self.made("//# struct Shape\nstruct Shape {\n  uint rows;\n  vec4 scales;\n};\n" + PUSH)
        self.assertIn("\nstruct Shape {\n  uint32_t rows = {};\n  uint32_t padding0[3] = {};\n"
                      "  std::array<float, 4> scales = {};\n};", header)
        self.assertNotIn("template", header)

    def test_refuses_what_cannot_be_read(self):
        self.refused("//# TUFF_WIDTH 4\n" + PUSH, "cannot read '//# TUFF_WIDTH 4'")
        self.refused("//# TUFF_WIDTH : four : elements\n" + PUSH, "TUFF_WIDTH: 'four' is no legal value")
        self.refused("//# ROWS : 1 : a\n//# ROWS : 2 : b\n" + PUSH, "ROWS is declared twice, and not alike")

    def test_refuses_a_struct_that_is_not_there(self):
        self.refused("//# struct Shape\n" + PUSH, "there is no struct Shape")

    def test_refuses_a_condition_that_is_not_declared(self):
        self.refused("//# ROWS : 1.. : of a tile\n#if COLS\n#endif\n" + PUSH, "#if asks for COLS")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])

"""What cmake/shaders.py generates from shaders with declared defines, and what it rejects: shaders.py ROOT [tests…]"""
import contextlib
import importlib.util
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "cmake"))
spec = importlib.util.spec_from_file_location("shaders", ROOT / "cmake" / "shaders.py")
shaders = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shaders)

PUSH = "layout(push_constant, std430) uniform Push {\n  TUFF_BASES(1)\n  uint n;\n} push;\n"


class Shaders(unittest.TestCase):
    def make(self, **files):
        """The generated headers of these files, by name, or the error. Names that end in _glsl are files to
        include."""
        with tempfile.TemporaryDirectory() as folder:
            root, out, paths = pathlib.Path(folder), pathlib.Path(folder) / "out", []
            for name, text in files.items():
                shared = name.endswith("_glsl")
                path = root / (name[:-5] + ".glsl" if shared else name + ".comp")
                path.write_text(text)
                paths += [] if shared else [path]
            messages = io.StringIO()
            with contextlib.redirect_stderr(messages):
                failed = shaders.main(root, out, paths)
            if failed:
                return messages.getvalue()
            return {path.stem: path.read_text() for path in (out / "shaders").glob("*.hpp")}

    def struct(self, header, name):
        """The fields of a structure in a header, in order."""
        body = re.split(r"^ *};", header.split(f"struct {name} {{\n")[1], flags=re.M)[0]
        return [line.split(";")[0].split("=")[0].split()[1] for line in body.splitlines() if line.strip()]

    def made(self, shader, header="sample", **included):
        """The header for a shader `sample` and .glsl files beside it."""
        made = self.make(sample=shader, **{f"{name}_glsl": text for name, text in included.items()})
        self.assertIsInstance(made, dict, made)
        return made[header]

    def refused(self, shader, why):
        self.assertIn(f"sample.comp: error: {why}", self.make(sample=shader))

    def test_the_program_fails_where_a_shader_is_refused(self):
        for text, status in ((PUSH, 0), ("//# TUFF_WIDTH 4\n" + PUSH, 1)):
            with tempfile.TemporaryDirectory() as folder:
                shader = pathlib.Path(folder) / "sample.comp"
                shader.write_text(text)
                result = subprocess.run([sys.executable, ROOT / "cmake/shaders.py", folder, f"{folder}/out", shader],
                                        capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, status, result.stderr)

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
        made = self.make(sample='//# ROWS : 1.. : of a tile\n#include "common.glsl"\n', common_glsl=PUSH)
        self.assertIn("namespace tuff::shaders::common_push {", made["common"])
        self.assertIn('#include "shaders/common.hpp"', made["sample"])

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
        self.refused("//# TUFF_WIDTH : four : elements\n" + PUSH, "TUFF_WIDTH: 'four' is not a legal value")
        self.refused("//# ROWS : 1 : a\n//# ROWS : 2 : b\n" + PUSH, "ROWS is declared twice, and not alike")

    def test_refuses_a_struct_that_is_not_there(self):
        self.refused("//# struct Shape\n" + PUSH, "there is no struct Shape")

    def test_refuses_a_condition_that_is_not_declared(self):
        self.refused("//# ROWS : 1.. : of a tile\n#if COLS\n#endif\n" + PUSH, "#if asks for COLS")

    def test_fields_come_in_alphabetical_order(self):
        made = self.make(a=PUSH + "//# TUFF_WIDTH : 1|2 : w\n//# LONG = 1 : 0|1 : l\n#if LONG\n#endif\n")
        self.assertEqual(self.struct(made["a"], "Defines"), ["long_", "width"])
        self.assertIn("RequiredDefine width;", made["a"])
        self.assertIn("int64_t long_ = 1;", made["a"])
        self.assertIn('kernel.define("TUFF_WIDTH", defines.width.value);', made["a"])

    def test_what_a_shader_defines_itself_is_not_its_planners(self):
        common = "//# PAIRS : 0|1 : p\n//# TYPE : 1..3 : t\n#if PAIRS\n#endif\n"
        made = self.make(common_glsl=common, a=PUSH + '#define PAIRS 0\n#include "common.glsl"\n',
                         b=PUSH + '#include "common.glsl"\n')
        self.assertEqual(self.struct(made["a"], "Defines"), ["type"])
        self.assertEqual(self.struct(made["b"], "Defines"), ["pairs", "type"])

    def test_a_group_is_one_structure_for_all_shaders(self):
        end = "//# BIAS : 0|1 : b\n//# TUFF_EXACT : 0|1 : e\n//# group end : BIAS TUFF_EXACT : how it ends\n"
        made = self.make(the_end_glsl=end, a=PUSH + '//# DEPTH : 1.. : d\n#include "the_end.glsl"\n//# ZERO : 0 : z\n',
                         b=PUSH + '#include "the_end.glsl"\n')
        self.assertEqual(self.struct(made["the_end"], "TheEnd"), ["bias", "exact"])
        self.assertEqual(self.struct(made["a"], "Defines"), ["depth", "end", "zero"])
        self.assertEqual(self.struct(made["b"], "Defines"), ["end"])
        self.assertIn('#include "shaders/the_end.hpp"', made["a"])
        self.assertIn('kernel.define("TUFF_EXACT", defines.end.exact.value);', made["a"])

    def test_a_file_may_have_a_group_and_a_push_block(self):
        common = "//# TYPE : 1..3 : t\n//# group operands : TYPE : o\n" + PUSH
        made = self.make(common_glsl=common, a='#include "common.glsl"\n')
        self.assertEqual(self.struct(made["common"], "Common"), ["type"])
        self.assertEqual(self.struct(made["common"], "Push"), ["n"])

    def test_conditions_of_a_push_block_are_flags(self):
        push = ("//# BIAS : 0|1 : b\n#define SUMS (BIAS || 0)\nlayout(push_constant, std430) uniform Push {\n#if SUMS\n"
                "  TUFF_BASES(2)\n#else\n  TUFF_BASES(1)\n#endif\n  TUFF_INDEX ld;\n#if SUMS\n  TUFF_INDEX stride;\n#endif\n"
                "#if !TUFF_WIDE\n  uint shift;\n#endif\n} push;\n")
        made = self.make(a=push)["a"]
        self.assertIn("template <typename Index, bool sums, bool wide>", made)
        self.assertEqual(self.struct(made, "Push<Index, false, true>"), ["ld"])
        self.assertEqual(self.struct(made, "Push<Index, true, false>"), ["ld", "stride", "shift"])

    def test_a_constant_is_a_function_of_its_defines(self):
        shader = ("//# ROWS : 1.. : r\n//# LANES = 8 : 4|8 : l\n//# DEPTH : 1.. : d\n"
                  "#define WIDTH (ROWS * LANES)\nconst int A = WIDTH > 4 ? WIDTH : 4, B = A + 1;  // both\n"
                  "//# constant BYTES : bytes\nconst uint BYTES = 4 * B;\n" + PUSH)
        made = self.made(shader)
        self.assertEqual(self.struct(made, "Bytes"), ["lanes", "rows"])
        self.assertIn("static int64_t bytes(const Bytes& defines) { return (4 * ((((defines.rows.value * defines.lanes)) > 4 ? "
                      "((defines.rows.value * defines.lanes)) : 4) + 1)); }", made)

    def test_refuses_constants_that_cannot_be_computed(self):
        for why, lines in (("there is no constant B", "const int A = 1;\n//# constant B : b\n"),
                           ("C, of a constant for C++, must be a define", "//# constant B : b\nconst int B = C + 1;\n"),
                           ("B, of a constant for C++, must be a define", "//# constant B : b\nconst int B = B + 1;\n"),
                           ("B, of a constant for C++, must be a define",
                            "//# constant B : b\nconst int B = 1;\nconst int B = 2;\n"),
                           ("B, of a constant for C++, is no expression", "//# constant B : b\nconst int B = int(1.5);\n")):
            with self.subTest(why=why):
                self.refused(lines + PUSH, why)

    def test_groups_that_cannot_be(self):
        use = PUSH + '#include "g.glsl"\n'
        declared = "//# X : 0|1 : x\n//# Y : 0|1 : y\n"
        for wanted, group, shader in (
                ("does not declare", declared + "//# group end : X Z : e\n", use),
                ("one group for each", declared + "//# group end : X : e\n//# group two : Y : t\n", use),
                ("one group for each", declared, use + "//# group end : X : e\n"),
                ("not the planner's", declared + "//# group end : X : e\n", "#define X 1\n" + use),
                ("a define and a group", declared + "//# group y : X : e\n", use),
                ("cannot read", declared + "//# group end : X\n", use)):
            with self.subTest(wanted=wanted, group=group):
                self.assertIn(wanted, self.make(g_glsl=group, a=shader))


if __name__ == "__main__":
    unittest.main()

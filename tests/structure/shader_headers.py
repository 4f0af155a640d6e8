"""What cmake/shaders.py makes of shaders that declare their defines, and what it refuses: shader_headers.py ROOT"""
import contextlib
import importlib.util
import io
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "cmake"))
spec = importlib.util.spec_from_file_location("shaders", ROOT / "cmake" / "shaders.py")
shaders = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shaders)

PUSH = "layout(push_constant, std430) uniform Push {\n  TUFF_BASES(1)\n  uint n;\n} push;\n"


class ShaderHeaders(unittest.TestCase):
    def make(self, **files):
        """The headers made of these files, by name, or the error. Names that end in _glsl are included ones."""
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
        """The fields of a structure of a header, in their order."""
        body = re.split(r"^ *};", header.split(f"struct {name} {{\n")[1], flags=re.M)[0]
        return [line.split(";")[0].split("=")[0].split()[1] for line in body.splitlines() if line.strip()]

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

    def test_an_if_that_nobody_declares_is_an_error(self):
        self.assertIn("#if asks for MISSPELT", self.make(a=PUSH + "//# X : 0|1 : x\n#if MISSPELT\n#endif\n"))


if __name__ == "__main__":
    unittest.main()

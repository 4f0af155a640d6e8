#!/usr/bin/env python3
"""scripts/api reads what the header says, and rejects what it would have to guess."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "scripts" / "api"))

import header  # noqa: E402
import python_tables  # noqa: E402

TEXT = (TOP / "include" / "tuff" / "tuff.h").read_text(encoding="utf-8")
LAST = "#ifdef __cplusplus\n}\n#endif\n"


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tuff.h"
        path.write_text(text, encoding="utf-8")
        return header.read(path)


def with_declaration(text):
    assert TEXT.count(LAST) == 1
    return read(TEXT.replace(LAST, f"/* -----\n * Other things\n * ----- */\n\n{text}\n\n{LAST}"))


def by_name(entries, name):
    return next(entry for entry in entries if entry["name"] == name)


class Versions(unittest.TestCase):
    def test_functions_of_version_0_8_0_are_no_younger_and_others_are(self):
        baseline = (TOP / "tests" / "abi" / "baseline.xml").read_text(encoding="utf-8")
        old = set(re.findall(r"<elf-symbol name='(tuff_\w+)' type='func-type'", baseline))
        functions = header.read(TOP / "include" / "tuff" / "tuff.h")["functions"]
        self.assertGreater(len(old), 100)
        for function in functions:
            version = tuple(int(part) for part in function["since"].split("."))
            self.assertEqual(version <= (0, 8, 0), function["name"] in old, function["name"])


class Refusals(unittest.TestCase):
    def refuses(self, declaration, *words):
        with self.assertRaises(header.HeaderError) as caught:
            with_declaration(declaration)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_an_integer_of_which_nothing_says_what_it_takes(self):
        self.refuses(
            "TUFF_API tuff_status tuff_more(tuff_stream stream, int32_t manner);", "tuff_more.manner", "tuff_dtype"
        )
        self.refuses("typedef struct tuff_more { uint32_t struct_size; uint32_t flags; } tuff_more;", "tuff_more.flags")

    def test_pointers_without_a_length(self):
        self.refuses("TUFF_API tuff_status tuff_more(const uint64_t* numbers);", "tuff_more.numbers", "LENGTHS")
        self.refuses("TUFF_API tuff_status tuff_more(const void* data);", "tuff_more.data")
        self.refuses("TUFF_API tuff_status tuff_more(char* text);", "tuff_more.text", "capacity")
        self.refuses("TUFF_API tuff_status tuff_more(const uint64_t* shape);", "tuff_more.shape")  # and no rank

    def test_pointers_to_pointers(self):
        self.refuses("TUFF_API tuff_status tuff_more(const char** names);", "tuff_more.names")

    def test_fields_that_may_or_may_not_be_null(self):
        text = "typedef struct tuff_more { uint32_t struct_size; const char* name; /* of it */ } tuff_more;"
        self.refuses(text, "tuff_more.name", "NULL")

    def test_types_that_other_languages_lack(self):
        for type in ("size_t", "long", "int", "_Bool", "float", "tuff_unary_desc"):
            self.refuses(f"TUFF_API tuff_status tuff_more({type} x);", "tuff_more.x")
        self.refuses("TUFF_API tuff_status tuff_more(tuff_stream stream, ...);", "tuff_more", "variable")
        self.refuses("typedef struct tuff_more { uint32_t a : 3; } tuff_more;", "tuff_more.a", "bit-field")
        self.refuses("typedef struct tuff_more { union { uint32_t a; double b; } u; } tuff_more;", "tuff_more")
        self.refuses("typedef struct tuff_more { uint32_t a[2][2]; } tuff_more;", "tuff_more.a")
        self.refuses("typedef int32_t (*tuff_more)(void* user);", "tuff_more")
        self.refuses("TUFF_API tuff_buffer* tuff_more(void);", "tuff_more")

    def test_parameters_without_names(self):
        self.refuses("TUFF_API tuff_status tuff_more(tuff_stream);", "tuff_more", "no name")

    def test_groups_whose_constants_are_of_the_other_sign(self):
        self.refuses("typedef int32_t tuff_more;\nenum { TUFF_MORE_A = 1 };", "tuff_more", "signed")
        self.refuses("typedef uint32_t tuff_more;\nenum { TUFF_MORE_A = -1 };", "tuff_more", "signed")

    def test_fields_older_than_the_ones_before(self):
        text = """typedef struct tuff_more {
          uint32_t struct_size;
          uint32_t a; /* since 0.9.0 */
          uint32_t b; /* since 0.8.0 */
        } tuff_more;"""
        self.refuses(text, "tuff_more.b", "0.9.0")

    def test_rows_of_comments_about_no_parameter(self):
        self.refuses(
            "/* Does it.\n *   in_shapes   sizes */\nTUFF_API tuff_status tuff_more(tuff_stream stream);", "in_shapes"
        )

    def test_a_header_that_does_not_compile(self):
        self.refuses("TUFF_API tuff_status tuff_more(tuff_missing x);", "does not compile", "tuff_missing")

    def test_rows_of_the_tables_that_nothing_uses(self):
        with self.assertRaises(header.HeaderError) as caught:
            read(re.sub(r"TUFF_API tuff_status tuff_buffer_import_host\([^;]*;", "", TEXT))
        self.assertIn("tuff_buffer_import_host.memory", str(caught.exception))


class Reading(unittest.TestCase):
    def test_a_function(self):
        api = with_declaration("""/* Does more.
 *   shape   rank sizes
 *   text    receives at most capacity bytes; may be NULL if capacity is 0
 * Since 0.9.0. Errors: none. */
TUFF_API tuff_status tuff_more(tuff_stream stream, int32_t dtype, const uint64_t* shape, uint32_t rank,
                               tuff_stats* stats, double* seconds, char* text, uint64_t capacity);""")
        function = by_name(api["functions"], "tuff_more")
        self.assertEqual((function["since"], function["section"]), ("0.9.0", "Other things"))
        self.assertEqual(function["doc"], "Does more.\nSince 0.9.0. Errors: none.")
        facts = {item["name"]: item for item in function["parameters"]}
        self.assertEqual(facts["dtype"]["values"], "tuff_dtype")
        self.assertEqual((facts["shape"]["direction"], facts["shape"]["length"]), ("in", "rank"))
        self.assertEqual((facts["stats"]["direction"], facts["seconds"]["direction"]), ("inout", "out"))
        self.assertEqual((facts["text"]["length"], facts["text"]["nullable"]), ("capacity", True))
        self.assertFalse(facts["shape"]["nullable"])
        table = " ".join(python_tables.write(api).split())
        self.assertRegex(
            table, r'"tuff_more": \( ?c_int32, \[ ?c_uint64, c_int32, POINTER\(c_uint64\), c_uint32, POINTER\(Stats\)'
        )

    def test_ages_of_fields_and_sizes(self):
        api = read(TEXT)
        desc = by_name(api["structures"], "tuff_conv2d_desc")
        self.assertEqual(desc["sizes"], [{"since": "0.1.0", "size": 176}, {"since": "0.4.0", "size": 232}])
        ages = {field["name"]: field["since"] for field in desc["fields"]}
        self.assertEqual(
            (ages["padding"], ages["groups"], ages["precision"], ages["bias"]), ("0.1.0", "0.4.0", "0.6.0", "0.4.0")
        )
        # "since 0.8.0 a UUID too" is not the version of the field.
        device = by_name(by_name(api["structures"], "tuff_context_desc")["fields"], "device")
        self.assertEqual(device["since"], "0.1.0")

    def test_pointers_that_are_kept_or_only_passed_on(self):
        api = read(TEXT)
        facts = {p["name"]: p for p in by_name(api["functions"], "tuff_copy_dtoh_async")["parameters"]}
        self.assertTrue(facts["dst"]["kept"])
        facts = {p["name"]: p for p in by_name(api["functions"], "tuff_set_log")["parameters"]}
        self.assertTrue(facts["user"]["opaque"] and facts["callback"]["nullable"])


if __name__ == "__main__":
    try:
        header.read(TOP / "include" / "tuff" / "tuff.h")
    except header.NoClang as error:
        print(f"the generator does not run on this device: {error}")
        sys.exit(2)
    unittest.main()

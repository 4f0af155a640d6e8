"""The WordPiece tokenizer of BERT's uncased models."""

import unicodedata

LONGEST_WORD = 100  # letters; a longer word is unknown


def _is_control(letter):
    return letter not in "\t\n\r" and unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn")


def _is_punctuation(letter):
    # In ASCII everything but letters and digits, including symbols such as $ and +.
    if letter < "\x7f":
        return not letter.isalnum() and not letter.isspace()
    return unicodedata.category(letter).startswith("P")


def _is_ideograph(letter):
    code = ord(letter)
    ranges = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F))
    ranges += ((0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(first <= code <= last for first, last in ranges)


def words_of(text):
    """Splits text into lower-case words without accents. Each punctuation mark and ideograph is a word of its own."""
    cleaned = []
    for letter in text:
        if letter in "\0\ufffd" or _is_control(letter):
            continue
        if letter.isspace():
            cleaned.append(" ")
        elif _is_ideograph(letter):
            cleaned.append(f" {letter} ")
        else:
            cleaned.append(letter)
    lowered = unicodedata.normalize("NFD", "".join(cleaned).lower())
    words = []
    for chunk in lowered.split():
        word = ""
        for letter in chunk:
            if unicodedata.category(letter) == "Mn":
                continue
            if _is_punctuation(letter):
                words += [word] * bool(word) + [letter]
                word = ""
            else:
                word += letter
        words += [word] * bool(word)
    return words


class Tokenizer:
    """Converts text to token ids, between [CLS] and [SEP]."""

    def __init__(self, vocabulary, max_tokens):
        self.vocabulary, self.max_tokens = vocabulary, max_tokens
        self.unknown, self.begin, self.end = (vocabulary[token] for token in ("[UNK]", "[CLS]", "[SEP]"))
        self._known = {}

    def _pieces(self, word):
        """Splits a word greedily into the longest pieces in the vocabulary; all but the first begin with ##."""
        if len(word) > LONGEST_WORD:
            return [self.unknown]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self.vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return [self.unknown]
            pieces.append(piece)
            start = end
        return pieces

    def __call__(self, text):
        ids = []
        for word in words_of(text):
            if word not in self._known:
                self._known[word] = self._pieces(word)
            ids += self._known[word]
        return [self.begin, *ids[: self.max_tokens - 2], self.end]

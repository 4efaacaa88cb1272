//! Field names and values, byte by byte.

/// `value` without optional white space at its ends (RFC 9110 §5.6.3).
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) const fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Cuts off what is in front of the first `separator` that is in no quoted string, and drops the
/// separator; everything, if there is none. `None` if a string does not end.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) fn cut<'a>(text: &mut &'a [u8], separator: u8) -> Option<&'a [u8]> {
    let (mut rest, mut is_quoted) = (text.iter(), false);
    while let Some(&byte) = rest.next() {
        if byte == b'"' {
            is_quoted = !is_quoted;
        } else if is_quoted {
            if byte == b'\\' {
                rest.next();
            }
        } else if byte == separator {
            let rest = rest.as_slice();
            let start = text.get(..text.len() - rest.len() - 1); // OK: both are in it.
            *text = rest;
            return start;
        }
    }
    (!is_quoted).then(|| core::mem::take(text))
}

/// Whether capital letters are the same as small ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Ignored,
    Exact,
}

/// Cuts off the first of `words!`, in small letters unless their case matters, that `text` begins
/// with: its place among them.
#[cfg_attr(target_pointer_width = "64", inline)]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) fn word(text: &mut &[u8], words: &[u8], case: Case) -> Option<usize> {
    let (mut place, mut words) = (0, words);
    while let [length, tail @ ..] = words {
        let (word, tail) = tail.split_at_checked(usize::from(*length))?;
        if let Some((start, rest)) = text.split_at_checked(word.len())
            && start.iter().zip(word).all(|(byte, expected)| {
                let is_folded = case == Case::Ignored;
                byte == expected || is_folded && byte.to_ascii_lowercase() == *expected
            })
        {
            *text = rest;
            return Some(place);
        }
        words = tail;
        place += 1;
    }
    None
}

/// Which of `words!` the whole of `text` is. None must come after one that it begins with.
pub(super) fn whole_word(mut text: &[u8], words: &[u8], case: Case) -> Option<usize> {
    let place = word(&mut text, words, case);
    if text.is_empty() { place } else { None }
}

/// Words one after the other, each behind its length: where an address is as long as a word, a
/// slice of slices is twice as large.
macro_rules! words {
    ($($word:literal),+) => {{
        const WORDS: &[&[u8]] = &[$($word),+];
        const PACKED: &[u8] = &$crate::http::text::packed::<{ $(1 + $word.len() +)+ 0 }>(WORDS);
        PACKED
    }};
}
pub(super) use words;

/// Must be called in a `const`: it panics unless `words` and their lengths fill it.
#[expect(clippy::cast_possible_truncation, reason = "no word is longer than a line")]
pub(super) const fn packed<const N: usize>(words: &[&[u8]]) -> [u8; N] {
    let (mut packed, mut at, mut place) = ([0; N], 0, 0);
    while place < words.len() {
        let word = words[place];
        packed[at] = word.len() as u8;
        at += 1;
        let (_, rest) = packed.split_at_mut(at);
        let (start, _) = rest.split_at_mut(word.len());
        start.copy_from_slice(word);
        at += word.len();
        place += 1;
    }
    assert!(at == N);
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_separator_in_a_string_does_not_separate() {
        for (text, start, rest) in [
            ("a,b,c", Some("a"), "b,c"),
            ("a", Some("a"), ""),
            ("", Some(""), ""),
            (",", Some(""), ""),
            ("a,", Some("a"), ""),
            (r#""a,b",c"#, Some(r#""a,b""#), "c"),
            (r#""a\",b",c"#, Some(r#""a\",b""#), "c"),
            (r#""a\\",b"#, Some(r#""a\\""#), "b"),
            (r"a\,b", Some(r"a\"), "b"),
            (r#"a"b"#, None, r#"a"b"#),
            (r#""a\""#, None, r#""a\""#),
            (r#"a,"b"#, Some("a"), r#""b"#),
        ] {
            let mut left = text.as_bytes();
            assert_eq!(cut(&mut left, b','), start.map(str::as_bytes), "{text}");
            assert_eq!(left, rest.as_bytes(), "{text}");
        }
    }

    #[test]
    fn words_are_cut_off_in_their_order() {
        const WORDS: &[u8] = words![b"ms", b"m", b"-to"];
        for (text, case, place, rest) in [
            ("ms", Case::Exact, Some(0), ""),
            ("mss", Case::Exact, Some(0), "s"),
            ("m", Case::Exact, Some(1), ""),
            ("Ms", Case::Exact, None, "Ms"),
            ("mS-", Case::Ignored, Some(0), "-"),
            ("-TO-", Case::Ignored, Some(2), "-"),
            // Letters only: `\r` is no capital `-`.
            ("\rto", Case::Ignored, None, "\rto"),
            ("-t", Case::Ignored, None, "-t"),
            ("", Case::Ignored, None, ""),
        ] {
            let mut left = text.as_bytes();
            assert_eq!((word(&mut left, WORDS, case), left), (place, rest.as_bytes()), "{text}");
            let whole = place.filter(|_| rest.is_empty());
            assert_eq!(whole_word(text.as_bytes(), WORDS, case), whole, "{text}");
        }
    }

    proptest! {
        #[test]
        fn only_white_space_at_the_ends_is_trimmed(text in "[ \ta\n]{0,8}") {
            let trimmed = text.trim_matches([' ', '\t']);
            prop_assert_eq!(trim(text.as_bytes()), trimmed.as_bytes());
        }

        #[test]
        fn what_is_cut_off_and_what_is_left_make_the_whole(text: Vec<u8>, separator: u8) {
            let mut rest = &text[..];
            let mut whole = cut(&mut rest, separator).map(<[u8]>::to_vec);
            if let Some(whole) = &mut whole && whole.len() < text.len() {
                whole.push(separator);
                whole.extend_from_slice(rest);
            }
            prop_assert!(whole.is_none_or(|whole| whole == text));
        }
    }
}

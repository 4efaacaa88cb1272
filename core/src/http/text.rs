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
    (!is_quoted).then_some(core::mem::take(text))
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
            && start.iter().zip(word).all(|(byte, expected)| match case {
                Case::Exact => byte == expected,
                Case::Ignored => byte.to_ascii_lowercase() == *expected,
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

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

/// Cuts off the first of `words`, in small letters unless their case matters, that `text` begins
/// with: its place among them.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) fn word(text: &mut &[u8], words: &[&[u8]], case: Case) -> Option<usize> {
    words.iter().position(|word| {
        let Some((start, rest)) = text.split_at_checked(word.len()) else { return false };
        let is_it = start.iter().zip(*word).all(|(byte, expected)| match case {
            Case::Exact => byte == expected,
            Case::Ignored => byte.to_ascii_lowercase() == *expected,
        });
        if is_it {
            *text = rest;
        }
        is_it
    })
}

/// Which of `words` the whole of `text` is. None must come after one that it begins with.
pub(super) fn whole_word(mut text: &[u8], words: &[&[u8]], case: Case) -> Option<usize> {
    let place = word(&mut text, words, case);
    if text.is_empty() { place } else { None }
}

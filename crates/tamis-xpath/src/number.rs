//! Numbers as XPath reads them, computed digit by digit as libxml2 does, so that both round in the same way.

/// Digits after the point that count, beyond leading zeros.
const MOST_FRACTION_DIGITS: usize = 20;
/// The exponent does not grow beyond about this.
const LARGEST_EXPONENT: i32 = 1_000_000;

/// The value of `number(text)`: NaN for a text that is not a number.
pub fn number(text: &str) -> f64 {
    let text = text.trim_matches([' ', '\t', '\n', '\r']).as_bytes();
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        text => (false, text),
    };
    let mut at = 0;
    let digit = |at: usize| text.get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0');
    if digit(0).is_none() && text.first() != Some(&b'.') {
        return f64::NAN;
    }
    let mut value = 0.0;
    while let Some(next) = digit(at) {
        value = value * 10.0 + f64::from(next);
        at += 1;
    }
    if text.get(at) == Some(&b'.') {
        let has_whole_part = at > 0;
        at += 1;
        if digit(at).is_none() && !has_whole_part {
            return f64::NAN;
        }
        let (mut places, mut fraction) = (0, 0.0);
        while digit(at) == Some(0) {
            places += 1;
            at += 1;
        }
        let most = places + MOST_FRACTION_DIGITS;
        while let Some(next) = digit(at)
            && places < most
        {
            fraction = fraction * 10.0 + f64::from(next);
            places += 1;
            at += 1;
        }
        value += fraction / 10f64.powf(places as f64);
        while digit(at).is_some() {
            at += 1;
        }
    }
    let mut exponent = 0;
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        let below_one = text.get(at) == Some(&b'-');
        if below_one || text.get(at) == Some(&b'+') {
            at += 1;
        }
        while let Some(next) = digit(at) {
            if exponent < LARGEST_EXPONENT {
                exponent = exponent * 10 + i32::from(next);
            }
            at += 1;
        }
        if below_one {
            exponent = -exponent;
        }
    }
    if at < text.len() {
        return f64::NAN;
    }
    if negative {
        value = -value;
    }
    value * 10f64.powf(f64::from(exponent))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_read_as_xpath_does() {
        for (text, value) in
            [("5", 5.0), (" -5.25\n", -5.25), (".5", 0.5), ("5.", 5.0), ("0.1", 0.1), ("1e2", 100.0)]
        {
            assert_eq!(number(text), value, "{text:?}");
        }
        for text in ["", " ", ".", "-", "+5", "5 5", "x", "0x10", "Infinity", "--5", "1,5", "\u{a0}5"] {
            assert!(number(text).is_nan(), "{text:?}");
        }
    }
}

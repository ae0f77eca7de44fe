//! "Did you mean …?": finds the known name closest to a mistyped one.

/// The known name closest to `name`, if one is close enough to be meant: the same but for case, or with
/// at most one typing error for every three letters (a letter added, missing, wrong, or swapped with its
/// neighbour).
///
/// ```
/// use tamis_core::suggest;
/// assert_eq!(suggest("contry", ["age", "country", "county"]), Some("country"));
/// assert_eq!(suggest("zip", ["age", "country"]), None);
/// ```
pub fn suggest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters: Vec<char> = lower_case(name);
    let most_errors = (letters.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let other = lower_case(candidate);
        if letters.len().abs_diff(other.len()) > most_errors {
            continue;
        }
        // A name of one or two letters would be one error away from every other.
        let errors = typing_errors(&letters, &other);
        if errors > most_errors || errors > 0 && letters.len().max(other.len()) < 3 {
            continue;
        }
        if best.is_none_or(|best| (errors, candidate) < best) {
            best = Some((errors, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn lower_case(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// The optimal string alignment distance.
fn typing_errors(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let wrong = (a[i - 1] != b[j - 1]) as usize;
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + wrong);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_kind_of_typing_error_once() {
        let errors = |a: &str, b: &str| typing_errors(&lower_case(a), &lower_case(b));
        assert_eq!(errors("country", "country"), 0);
        assert_eq!(errors("contry", "country"), 1);
        assert_eq!(errors("countrry", "country"), 1);
        assert_eq!(errors("cauntry", "country"), 1);
        assert_eq!(errors("conutry", "country"), 1);
        assert_eq!(errors("", "abc"), 3);
    }

    #[test]
    fn suggests_only_what_may_be_meant() {
        let known = ["Age", "country", "address.city", "x"];
        assert_eq!(suggest("age", known), Some("Age"));
        assert_eq!(suggest("adress.citty", known), Some("address.city"));
        assert_eq!(suggest("y", known), None);
        assert_eq!(suggest("X", known), Some("x"));
        assert_eq!(suggest("price", known), None);
        assert_eq!(suggest("", known), None);
    }
}

//! Internet addresses as text that sorts like the addresses, so that a network is a range.
//!
//! `ip(address)` is `4:` or `6:` and the address in hexadecimal digits. `ip_in(address, '10.0.0.0/8')` is the range of that
//! term between the first address of the network and its last, which an index finds like any other range.

use std::net::IpAddr;

use crate::error::ExpressionError;

/// The text of an address, or `None` if it is none. An IPv4 address inside IPv6 is that of IPv4.
pub(super) fn ip_key(text: &str) -> Option<String> {
    text.trim_ascii().parse().ok().map(key)
}

fn key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("4:{:08x}", address.to_bits()),
        IpAddr::V6(address) => format!("6:{:032x}", address.to_bits()),
    }
}

/// The first and the last address of a network such as `10.0.0.0/8`, `2001:db8::/32` or `192.0.2.7`.
///
/// ```
/// use tamis_core::term::network_ends;
/// let ends = network_ends("10.0.0.0/8").unwrap();
/// assert_eq!(ends, ("4:0a000000".to_string(), "4:0affffff".to_string()));
/// assert!(network_ends("10.0.0.1/8").is_err());
/// ```
pub fn network_ends(network: &str) -> Result<(String, String), ExpressionError> {
    let refused = |hint: &str| {
        ExpressionError::new(format!("{network:?} is not a network")).with_hint(hint.to_string())
    };
    const EXAMPLES: &str = "write '10.0.0.0/8', '2001:db8::/32' or a single address";
    let (address, length) = match network.trim_ascii().split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (network.trim_ascii(), None),
    };
    let address: IpAddr = address.parse().map_err(|_| refused(EXAMPLES))?;
    let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
    let length: u32 = match length {
        None => bits,
        Some(text) => text.parse().ok().filter(|length| *length <= bits).ok_or_else(|| refused(EXAMPLES))?,
    };
    let host = bits - length;
    let rest = if host == 0 { 0 } else { u128::MAX >> (128 - host) };
    let first = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let at = |number: u128| match address {
        IpAddr::V4(_) => IpAddr::V4((number as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    };
    if first & rest != 0 {
        let hint = format!("the network around it is '{}/{length}'", at(first & !rest));
        return Err(refused(&hint));
    }
    let (low, high) = (key(at(first)), key(at(first | rest)));
    if low[..2] != high[..2] {
        return Err(refused("it holds addresses of IPv4 and others: write one network for each"));
    }
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_network_is_refused_with_what_would_be_one() {
        for (text, hint) in [
            ("", "write '10.0.0.0/8'"),
            ("10.0.0.0/33", "write '10.0.0.0/8'"),
            ("10.0.0.0/-1", "write '10.0.0.0/8'"),
            ("10.0.0/8", "write '10.0.0.0/8'"),
            ("10.1.2.3/8", "the network around it is '10.0.0.0/8'"),
            ("2001:db8::1/32", "the network around it is '2001:db8::/32'"),
            ("::fffe:0:0/95", "one network for each"),
        ] {
            let error = network_ends(text).unwrap_err();
            assert!(error.hint.unwrap().contains(hint), "{text}");
        }
        assert!(network_ends("0.0.0.0/0").is_ok() && network_ends("::/0").is_ok());
        assert!(network_ends("::ffff:10.0.0.0/104").is_ok());
    }

    proptest! {
        #[test]
        fn an_address_is_in_a_network_if_its_first_bits_are(
            network in any::<u32>(), length in 0u32..=32, near in any::<u32>(), keep in 0u32..=32,
        ) {
            let mask = |length: u32| u32::MAX.checked_shl(32 - length).unwrap_or(0);
            let network = network & mask(length);
            let address = network & mask(keep) | near & !mask(keep);
            let (low, high) = network_ends(&format!("{}/{length}", std::net::Ipv4Addr::from(network))).unwrap();
            let key = ip_key(&std::net::Ipv4Addr::from(address).to_string()).unwrap();
            prop_assert_eq!((low..=high).contains(&key), address & mask(length) == network);
        }
    }
}

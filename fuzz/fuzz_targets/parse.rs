#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (tamis_fuzz::target("parse").check)(data));

//! Sixty-four bytes at a time: which of them are equal to a byte, as a bit each.
//!
//! `unsafe` is here for one reason: instructions that not every processor has. A value of [`Avx512`] or [`Avx2`]
//! is created only after a check that the processor has them, so their methods are safe to call. [`Found::run`]
//! compiles a job once for each of them, so that everything is inlined into one loop. No closures here: they would
//! be compiled without these instructions, and every comparison would become a call.
//!
//! Processors with neither (arm64 among them) get no lanes: a scan by words of eight bytes was slower than reading
//! byte by byte.

/// Compares sixty-four bytes at once. Bit 0 is the first byte.
pub(super) trait Lanes: Copy {
    type Block: Copy;

    fn load(self, bytes: &[u8; 64]) -> Self::Block;
    /// Fewer than sixty-four bytes, and spaces behind them.
    #[inline(always)]
    fn load_tail(self, bytes: &[u8]) -> Self::Block {
        let mut padded = [b' '; 64];
        padded[..bytes.len()].copy_from_slice(bytes);
        self.load(&padded)
    }
    fn equal(self, block: Self::Block, byte: u8) -> u64;
    /// Which bytes are equal once bit 5 is set: `{` finds `[` too, `e` finds `E`.
    fn equal_with_bit_5(self, block: Self::Block, byte: u8) -> u64;
    fn below(self, block: Self::Block, byte: u8) -> u64;
    /// Which bytes are white space: space, tab, line feed, carriage return.
    fn white(self, block: Self::Block) -> u64;
    /// Which bytes are digits.
    fn digits(self, block: Self::Block) -> u64;
    /// Which bytes are brackets, colons or commas; and two control characters, 0x0C and 0x1A.
    fn separators(self, block: Self::Block) -> u64;
    /// The bits that either block has.
    fn either(self, a: Self::Block, b: Self::Block) -> Self::Block;
    fn have_bit_7(self, block: Self::Block) -> u64;
    /// Which bytes have one of these bits.
    fn have_bits(self, block: Self::Block, bits: u8) -> u64;
    /// The block, and bit 7 in the chosen bytes.
    fn with_bit_7(self, block: Self::Block, chosen: u64) -> Self::Block;
    /// Each bit becomes the parity of itself and all bits below it.
    fn prefix_xor(self, bits: u64) -> u64;
    /// Puts the chosen bytes side by side. What comes after them is undefined.
    fn gather(self, block: Self::Block, chosen: u64, into: &mut [u8; 64]);
    /// Writes the place of each chosen byte in a text in which the first byte of the block is at `start`. What comes after them
    /// is undefined.
    fn gather_places(self, chosen: u64, start: u16, into: &mut [u16; 64]);
    /// Whether [`gather_bits`](Self::gather_bits) is fast.
    const GATHERS_BITS: bool;
    /// Puts the chosen bits side by side.
    fn gather_bits(self, bits: u64, chosen: u64) -> u64;
}

/// For the low four bits of a byte, the white space that has them. The highest bit makes the others equal to no byte: one
/// that has it itself is looked up as 0.
const WHITE: [u8; 16] = {
    let mut white = [0x80; 16];
    white[0] = b' ';
    white[9] = b'\t';
    white[10] = b'\n';
    white[13] = b'\r';
    white
};

/// For the low four bits of a byte, the separator that has them once bit 5 is set.
const SEPARATORS: [u8; 16] = {
    let mut separators = [0; 16];
    separators[0xA] = b':';
    separators[0xB] = b'{';
    separators[0xC] = b',';
    separators[0xD] = b'}';
    separators
};

/// The places of the bits of every byte, a byte each.
static PLACES_OF_BITS: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// What is to be done with lanes. `run` must be `#[inline(always)]`, or it is compiled without their instructions.
pub(super) trait Job {
    type Output;

    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Lanes that this processor has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Found {
    /// The widest there are.
    #[cfg(target_arch = "x86_64")]
    pub fn find() -> Option<Self> {
        Avx512::find().map(Self::Avx512).or_else(|| Avx2::find().map(Self::Avx2))
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn find() -> Option<Self> {
        None
    }

    pub fn run<J: Job>(self, job: J) -> J::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => x86::with_avx512(job, lanes),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => x86::with_avx2(job, lanes),
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};
#[cfg(all(test, target_arch = "x86_64"))]
pub(super) use x86::{with_avx2, with_avx512};

/// The text of bytes that are all below 128.
///
/// # Safety
/// A lone byte from 128 on is not UTF-8, and a `str` must be.
pub(super) unsafe fn ascii_text(bytes: &[u8]) -> &str {
    // SAFETY: ASCII is UTF-8; that it is ASCII is what the caller promises.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Job, Lanes, PLACES_OF_BITS, SEPARATORS, WHITE};

    /// Proof that the processor has AVX-512 with instructions on bytes, of which one gathers them (VBMI2).
    #[derive(Clone, Copy, Debug)]
    pub struct Avx512(());

    /// Proof that the processor has AVX2.
    #[derive(Clone, Copy, Debug)]
    pub struct Avx2(());

    macro_rules! all_detected {
        ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
    }

    impl Avx512 {
        #[inline]
        pub fn find() -> Option<Self> {
            let has = all_detected!(
                "avx512f",
                "avx512bw",
                "avx512vbmi2",
                "avx2",
                "bmi1",
                "bmi2",
                "popcnt",
                "pclmulqdq"
            );
            has.then_some(Self(()))
        }
    }

    impl Avx2 {
        #[inline]
        pub fn find() -> Option<Self> {
            all_detected!("avx2", "bmi1", "bmi2", "popcnt", "pclmulqdq").then_some(Self(()))
        }
    }

    pub fn with_avx512<J: Job>(job: J, lanes: Avx512) -> J::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx2,bmi1,bmi2,popcnt,pclmulqdq")]
        fn compiled<J: Job>(job: J, lanes: Avx512) -> J::Output {
            job.run(lanes)
        }
        // SAFETY: the lanes prove that the processor has these instructions.
        unsafe { compiled(job, lanes) }
    }

    pub fn with_avx2<J: Job>(job: J, lanes: Avx2) -> J::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,pclmulqdq")]
        fn compiled<J: Job>(job: J, lanes: Avx2) -> J::Output {
            job.run(lanes)
        }
        // SAFETY: as above.
        unsafe { compiled(job, lanes) }
    }

    /// Multiplying by all ones without carries adds up, modulo 2, all bits below each bit.
    ///
    /// # Safety
    /// The processor must have `pclmulqdq`.
    #[inline(always)]
    unsafe fn prefix_xor(bits: u64) -> u64 {
        // SAFETY: the caller says so.
        unsafe {
            let product =
                _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(0xFFu8 as i8));
            _mm_cvtsi128_si64(product) as u64
        }
    }

    /// A byte for each bit, with bit 7 where it is set.
    ///
    /// # Safety
    /// The processor must have AVX2.
    #[inline(always)]
    unsafe fn bits_7(bits: u32) -> __m256i {
        // SAFETY: the caller says so.
        unsafe {
            let byte_of_bit =
                _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
            let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), byte_of_bit);
            let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201u64 as i64);
            let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
            _mm256_and_si256(is_set, _mm256_set1_epi8(0x80u8 as i8))
        }
    }

    // SAFETY, for every block below: a value of the type proves that the processor has the instructions; loads are
    // unaligned and within the array.

    impl Lanes for Avx512 {
        type Block = __m512i;

        #[inline(always)]
        fn load(self, bytes: &[u8; 64]) -> __m512i {
            unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
        }

        #[inline(always)]
        fn load_tail(self, bytes: &[u8]) -> __m512i {
            assert!(bytes.len() < 64);
            // Only what is there is read.
            unsafe {
                let there = (1 << bytes.len()) - 1;
                _mm512_mask_loadu_epi8(_mm512_set1_epi8(b' ' as i8), there, bytes.as_ptr().cast())
            }
        }

        #[inline(always)]
        fn equal(self, block: __m512i, byte: u8) -> u64 {
            unsafe { _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte as i8)) }
        }

        #[inline(always)]
        fn equal_with_bit_5(self, block: __m512i, byte: u8) -> u64 {
            unsafe { self.equal(_mm512_or_si512(block, _mm512_set1_epi8(0x20)), byte) }
        }

        #[inline(always)]
        fn below(self, block: __m512i, byte: u8) -> u64 {
            unsafe { _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(byte as i8)) }
        }

        #[inline(always)]
        fn white(self, block: __m512i) -> u64 {
            unsafe {
                let table = _mm512_broadcast_i32x4(_mm_loadu_si128(WHITE.as_ptr().cast()));
                _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table, block), block)
            }
        }

        #[inline(always)]
        fn digits(self, block: __m512i) -> u64 {
            unsafe { self.below(_mm512_sub_epi8(block, _mm512_set1_epi8(b'0' as i8)), 10) }
        }

        #[inline(always)]
        fn separators(self, block: __m512i) -> u64 {
            unsafe {
                let table = _mm512_broadcast_i32x4(_mm_loadu_si128(SEPARATORS.as_ptr().cast()));
                let block = _mm512_or_si512(block, _mm512_set1_epi8(0x20));
                _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table, block), block)
            }
        }

        #[inline(always)]
        fn either(self, a: __m512i, b: __m512i) -> __m512i {
            unsafe { _mm512_or_si512(a, b) }
        }

        #[inline(always)]
        fn with_bit_7(self, block: __m512i, chosen: u64) -> __m512i {
            unsafe { _mm512_or_si512(block, _mm512_maskz_set1_epi8(chosen, 0x80u8 as i8)) }
        }

        #[inline(always)]
        fn have_bits(self, block: __m512i, bits: u8) -> u64 {
            unsafe { _mm512_test_epi8_mask(block, _mm512_set1_epi8(bits as i8)) }
        }

        #[inline(always)]
        fn have_bit_7(self, block: __m512i) -> u64 {
            unsafe { _mm512_movepi8_mask(block) }
        }

        #[inline(always)]
        fn prefix_xor(self, bits: u64) -> u64 {
            unsafe { prefix_xor(bits) }
        }

        #[inline(always)]
        fn gather(self, block: __m512i, chosen: u64, into: &mut [u8; 64]) {
            // Into a register first: straight into memory it is microcode on some processors.
            unsafe {
                _mm512_storeu_si512(into.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(chosen, block));
            }
        }

        #[inline(always)]
        fn gather_places(self, chosen: u64, start: u16, into: &mut [u16; 64]) {
            const NUMBERS: [u8; 64] = {
                let mut numbers = [0; 64];
                let mut at = 0;
                while at < 64 {
                    numbers[at] = at as u8;
                    at += 1;
                }
                numbers
            };
            unsafe {
                let numbers = _mm512_maskz_compress_epi8(chosen, self.load(&NUMBERS));
                let into = into.as_mut_ptr();
                let start = _mm512_set1_epi16(start as i16);
                let low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(numbers));
                _mm512_storeu_si512(into.cast(), _mm512_add_epi16(low, start));
                if chosen.count_ones() > 32 {
                    let high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(numbers));
                    _mm512_storeu_si512(into.add(32).cast(), _mm512_add_epi16(high, start));
                }
            }
        }

        const GATHERS_BITS: bool = true;

        #[inline(always)]
        fn gather_bits(self, bits: u64, chosen: u64) -> u64 {
            unsafe { _pext_u64(bits, chosen) }
        }
    }

    impl Lanes for Avx2 {
        type Block = [__m256i; 2];

        #[inline(always)]
        fn load(self, bytes: &[u8; 64]) -> Self::Block {
            let (low, high) = bytes.split_at(32);
            unsafe { [_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast())] }
        }

        #[inline(always)]
        fn equal(self, [low, high]: Self::Block, byte: u8) -> u64 {
            unsafe {
                let wanted = _mm256_set1_epi8(byte as i8);
                self.bits([_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted)])
            }
        }

        #[inline(always)]
        fn equal_with_bit_5(self, [low, high]: Self::Block, byte: u8) -> u64 {
            unsafe {
                let bit = _mm256_set1_epi8(0x20);
                self.equal([_mm256_or_si256(low, bit), _mm256_or_si256(high, bit)], byte)
            }
        }

        #[inline(always)]
        fn below(self, [low, high]: Self::Block, byte: u8) -> u64 {
            unsafe {
                let greatest = _mm256_set1_epi8((byte - 1) as i8);
                self.bits([
                    _mm256_cmpeq_epi8(_mm256_max_epu8(low, greatest), greatest),
                    _mm256_cmpeq_epi8(_mm256_max_epu8(high, greatest), greatest),
                ])
            }
        }

        #[inline(always)]
        fn white(self, [low, high]: Self::Block) -> u64 {
            unsafe {
                let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(WHITE.as_ptr().cast()));
                self.bits([
                    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, low), low),
                    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, high), high),
                ])
            }
        }

        #[inline(always)]
        fn digits(self, [low, high]: Self::Block) -> u64 {
            unsafe {
                let zero = _mm256_set1_epi8(b'0' as i8);
                self.below([_mm256_sub_epi8(low, zero), _mm256_sub_epi8(high, zero)], 10)
            }
        }

        #[inline(always)]
        fn separators(self, [low, high]: Self::Block) -> u64 {
            unsafe {
                let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(SEPARATORS.as_ptr().cast()));
                let bit = _mm256_set1_epi8(0x20);
                let (low, high) = (_mm256_or_si256(low, bit), _mm256_or_si256(high, bit));
                self.bits([
                    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, low), low),
                    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, high), high),
                ])
            }
        }

        #[inline(always)]
        fn either(self, [low, high]: Self::Block, [other_low, other_high]: Self::Block) -> Self::Block {
            unsafe { [_mm256_or_si256(low, other_low), _mm256_or_si256(high, other_high)] }
        }

        #[inline(always)]
        fn with_bit_7(self, [low, high]: Self::Block, chosen: u64) -> Self::Block {
            unsafe {
                [
                    _mm256_or_si256(low, bits_7(chosen as u32)),
                    _mm256_or_si256(high, bits_7((chosen >> 32) as u32)),
                ]
            }
        }

        #[inline(always)]
        fn have_bits(self, [low, high]: Self::Block, bits: u8) -> u64 {
            unsafe {
                let bits = _mm256_set1_epi8(bits as i8);
                !self.equal([_mm256_and_si256(low, bits), _mm256_and_si256(high, bits)], 0)
            }
        }

        #[inline(always)]
        fn have_bit_7(self, block: Self::Block) -> u64 {
            self.bits(block)
        }

        #[inline(always)]
        fn prefix_xor(self, bits: u64) -> u64 {
            unsafe { prefix_xor(bits) }
        }

        #[inline(always)]
        fn gather(self, [low, high]: Self::Block, chosen: u64, into: &mut [u8; 64]) {
            let (mut count, mut left) = (0, chosen);
            unsafe {
                let quarters = [
                    _mm256_castsi256_si128(low),
                    _mm256_extracti128_si256::<1>(low),
                    _mm256_castsi256_si128(high),
                    _mm256_extracti128_si256::<1>(high),
                ];
                for quarter in quarters {
                    for eight in [quarter, _mm_unpackhi_epi64(quarter, quarter)] {
                        let numbers = _mm_loadl_epi64(PLACES_OF_BITS[left as usize & 0xFF].as_ptr().cast());
                        let gathered = _mm_shuffle_epi8(eight, numbers);
                        // At most eight are chosen of every eight, so that the last of these stores ends where the array does.
                        _mm_storel_epi64(into.as_mut_ptr().add(count).cast(), gathered);
                        count += (left & 0xFF).count_ones() as usize;
                        left >>= 8;
                    }
                }
            }
        }

        #[inline(always)]
        fn gather_places(self, chosen: u64, start: u16, into: &mut [u16; 64]) {
            let (mut count, mut left) = (0, chosen);
            unsafe {
                let mut start = _mm_set1_epi16(start as i16);
                for _ in 0..8 {
                    let numbers = _mm_loadl_epi64(PLACES_OF_BITS[left as usize & 0xFF].as_ptr().cast());
                    let places = _mm_add_epi16(_mm_cvtepu8_epi16(numbers), start);
                    // As above.
                    _mm_storeu_si128(into.as_mut_ptr().add(count).cast(), places);
                    count += (left & 0xFF).count_ones() as usize;
                    left >>= 8;
                    start = _mm_add_epi16(start, _mm_set1_epi16(8));
                }
            }
        }

        /// AMD's processors before Zen 3 have it in microcode.
        const GATHERS_BITS: bool = false;

        #[inline(always)]
        fn gather_bits(self, bits: u64, chosen: u64) -> u64 {
            unsafe { _pext_u64(bits, chosen) }
        }
    }

    impl Avx2 {
        /// The highest bit of every byte.
        #[inline(always)]
        fn bits(self, [low, high]: [__m256i; 2]) -> u64 {
            let (low, high) = unsafe { (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)) };
            low as u32 as u64 | (high as u32 as u64) << 32
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Compare<'b>(&'b [u8; 64], u8);

    impl Job for Compare<'_> {
        type Output = ([u64; 13], Vec<(u8, u16)>);

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Self::Output {
            let block = lanes.load(self.0);
            let chosen = lanes.below(block, self.1.max(1));
            let (mut bytes, mut places) = ([0; 64], [0; 64]);
            lanes.gather(block, chosen, &mut bytes);
            lanes.gather_places(chosen, 1000, &mut places);
            let gathered = bytes.into_iter().zip(places).take(chosen.count_ones() as usize).collect();
            let masks = [
                lanes.equal(block, self.1),
                lanes.equal_with_bit_5(block, self.1),
                lanes.below(block, self.1.max(1)),
                lanes.separators(block),
                lanes.have_bit_7(block),
                lanes.prefix_xor(lanes.equal(block, self.1)),
                lanes.white(block),
                lanes.digits(block),
                lanes.equal(lanes.either(block, lanes.load(&[0x11; 64])), self.1),
                lanes.have_bit_7(lanes.with_bit_7(block, chosen)),
                lanes.gather_bits(lanes.equal(block, self.1 / 2), chosen),
                lanes.have_bits(block, self.1),
                lanes.equal(lanes.load_tail(&self.0[..tail_len(self.1)]), b' '),
            ];
            (masks, gathered)
        }
    }

    /// Some number of bytes.
    fn tail_len(byte: u8) -> usize {
        usize::from(byte) % 64
    }

    fn one_by_one(bytes: &[u8; 64], byte: u8) -> ([u64; 13], Vec<(u8, u16)>) {
        let bits = |holds: &dyn Fn(u8) -> bool| {
            bytes.iter().enumerate().fold(0, |bits, (at, b)| bits | (holds(*b) as u64) << at)
        };
        let equal = bits(&|b| b == byte);
        let gathered = bytes.iter().copied().zip(1000..).filter(|(b, _)| *b < byte.max(1)).collect();
        let masks = [
            equal,
            bits(&|b| b | 0x20 == byte),
            bits(&|b| b < byte.max(1)),
            bits(&|b| matches!(b, b'{' | b'}' | b'[' | b']' | b':' | b',' | 0x0C | 0x1A)),
            bits(&|b| b >= 128),
            (0..64)
                .fold(0, |all, at| all | ((equal & (u64::MAX >> (63 - at))).count_ones() as u64 % 2) << at),
            bits(&|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')),
            bits(&|b| b.is_ascii_digit()),
            bits(&|b| b | 0x11 == byte),
            bits(&|b| b >= 128 || b < byte.max(1)),
            bytes
                .iter()
                .filter(|b| **b < byte.max(1))
                .zip(0..)
                .fold(0, |bits, (b, at)| bits | u64::from(*b == byte / 2) << at),
            bits(&|b| b & byte != 0),
            bits(&|b| b == b' ') | u64::MAX << tail_len(byte),
        ];
        (masks, gathered)
    }

    proptest! {
        #[test]
        fn lanes_compare_as_bytes_do(
            bytes in prop::collection::vec(any::<u8>(), 64), at in 0usize..64, other in any::<u8>(),
        ) {
            let bytes: [u8; 64] = bytes.try_into().unwrap();
            for byte in [bytes[at], bytes[at] | 0x20, other] {
                let expected = one_by_one(&bytes, byte);
                if let Some(lanes) = Avx512::find() {
                    prop_assert_eq!(&with_avx512(Compare(&bytes, byte), lanes), &expected);
                }
                if let Some(lanes) = Avx2::find() {
                    prop_assert_eq!(&with_avx2(Compare(&bytes, byte), lanes), &expected);
                }
            }
        }
    }
}

//! Two words at a time, in one register.
//!
//! The words that an event sets are alive for as long as it is read. As numbers they would be 16 values in general registers, which
//! are not as many, so each of them would be loaded, changed and stored for every value of the event.
//!
//! `unsafe` is here for one instruction, which every processor of that architecture has.

/// Two words, as they are stored.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub(super) struct Pair(pub [u64; 2]);

#[cfg(target_arch = "x86_64")]
mod register {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_or_si128, _mm_store_si128};

    use super::Pair;

    /// Two words, in a register.
    #[derive(Clone, Copy)]
    pub struct Register(__m128i);

    impl Register {
        #[inline(always)]
        pub fn load(pair: &Pair) -> Self {
            // SAFETY: a pair has the size and the alignment of a register, and every processor of this architecture has it.
            Self(unsafe { _mm_load_si128(std::ptr::from_ref(pair).cast()) })
        }

        #[inline(always)]
        pub fn or(self, pair: &Pair) -> Self {
            // SAFETY: every processor of this architecture has the instruction.
            Self(unsafe { _mm_or_si128(self.0, Self::load(pair).0) })
        }

        #[inline(always)]
        pub fn words(self) -> [u64; 2] {
            let mut pair = Pair::default();
            // SAFETY: as for `load`.
            unsafe { _mm_store_si128(std::ptr::from_mut(&mut pair).cast(), self.0) };
            pair.0
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod register {
    use super::Pair;

    /// Two words.
    #[derive(Clone, Copy)]
    pub struct Register([u64; 2]);

    impl Register {
        #[inline(always)]
        pub fn load(pair: &Pair) -> Self {
            Self(pair.0)
        }

        #[inline(always)]
        pub fn or(self, pair: &Pair) -> Self {
            Self([self.0[0] | pair.0[0], self.0[1] | pair.0[1]])
        }

        #[inline(always)]
        pub fn words(self) -> [u64; 2] {
            self.0
        }
    }
}

pub(super) use register::Register;

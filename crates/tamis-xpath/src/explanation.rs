pub struct Explanation;
pub struct StepReached;

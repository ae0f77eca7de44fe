/** The events that bench/flow/traffic.py makes: a linear congruential generator, so that both make the same. */
final class Traffic {
    private static final long MULTIPLIER = 6364136223846793005L;
    private static final long INCREMENT = 1442695040888963407L;
    private static final int USERS = 10_000;

    private final int rules;
    private long state = 42;
    int user;
    int kind;

    Traffic(int rules) {
        this.rules = rules;
    }

    void next() {
        user = draw(USERS);
        kind = (int) ((user * 7919L + draw(3)) % rules);
    }

    private int draw(int bound) {
        state = state * MULTIPLIER + INCREMENT;
        return (int) ((state >>> 33) % bound);
    }
}

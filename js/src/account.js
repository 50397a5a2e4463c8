/**
 * A device's own account: what it has answered, word for word, and what it may still answer.
 *
 *     once        a round is answered once; whoever asks again gets the same bytes
 *     rounds      of a task one is answered, and no other
 *     budget      what all tasks of any `days` days promise together: sums of ε and of δ, exactly
 *     versions    of a survey, none older than one that was answered
 *
 * An answer and its cost are in the store before the answer is handed out. docs/wire.md says what
 * this account does not know that muhat's own does.
 */

import { fromHex, toHex } from "./bytes.js";
import { Fraction } from "./fractions.js";
import { demand } from "./refused.js";

const FORMAT = "muhat.account/1";
const DAY = 86_400_000;

/**
 * @typedef {object} Answer
 * @property {string} round
 * @property {string} task
 * @property {string} epsilon
 * @property {string} delta
 * @property {number} time
 * @property {string | null} survey
 * @property {number | null} version
 * @property {number | null} expires
 * @property {string} message hexadecimal, and nothing when the survey has ended
 */

/**
 * @typedef {object} State
 * @property {string} format
 * @property {string} epsilon
 * @property {string} delta
 * @property {number} days
 * @property {Answer[]} answers
 */

/** @template T @typedef {(state: State | null) => {state: State | null, found: T}} Change */

/**
 * @typedef {object} Store keeps one state, for its owner alone
 * @property {<T>(change: Change<T>) => Promise<T>} transact
 *     Hands the state, or null, to `change` and keeps what comes back, durably, before it returns;
 *     nobody else reads or writes in between, and if `change` throws nothing is kept. A state of
 *     null is not kept.
 */

export class Account {
  /**
   * @param {Store} store
   * @param {object} budget of a new account; one that is there already has its own
   * @param {number} budget.epsilon
   * @param {number} [budget.delta]
   * @param {number} [budget.days]
   * @param {() => number} [clock] milliseconds since 1970
   */
  constructor(store, { epsilon, delta = 0, days = 30 }, clock = Date.now) {
    const [most, loss] = [Fraction.typed(epsilon), Fraction.typed(delta)];
    demand(
      most.n > 0n && loss.n >= 0n && loss.n < loss.d,
      "a budget has an epsilon above 0, and a delta below 1.",
    );
    demand(
      Number.isInteger(days) && days >= 1 && days <= 100_000,
      "days must be a whole number from 1 to 100000.",
    );
    this.store = store;
    this.clock = clock;
    /** @type {State} */
    this.empty = { format: FORMAT, epsilon: texted(most), delta: texted(loss), days, answers: [] };
  }

  /**
   * The message that was sent for this round, or what `make` makes, if it may be sent.
   *
   * @param {import("./round.js").Round} round
   * @param {() => Promise<Uint8Array>} make
   * @returns {Promise<Uint8Array>}
   */
  async answer(round, make) {
    // Twice, as no store can wait while a message is made: what another one answers in the
    // meantime is what counts, and the message that was made is forgotten.
    const sent = await this.store.transact((state) => ({
      state: null,
      found: this.sent(state, round),
    }));
    if (sent !== null) return fromHex(sent);
    const message = toHex(await make());
    return fromHex(await this.store.transact((state) => this.added(state, round, message)));
  }

  /** What may still be promised now, as numbers that are near to it: {epsilon, delta}. */
  async remaining() {
    return this.store.transact((state) => {
      const known = checked(state ?? this.empty);
      const spent = spentIn(known, this.now(known), "");
      /** @param {"epsilon" | "delta"} name */
      const left = (name) => near(Fraction.fromText(known[name]).minus(spent[name]));
      return { state: null, found: { epsilon: left("epsilon"), delta: left("delta") } };
    });
  }

  /**
   * The message that was sent, or null if one may be made.
   *
   * @param {State | null} state
   * @param {import("./round.js").Round} round
   */
  sent(state, round) {
    const known = checked(state ?? this.empty);
    const now = this.now(known);
    round.requireOpen(now);
    const [digest, task] = [toHex(round.digest), toHex(round.task)];
    const before = known.answers.find((answer) => answer.round === digest);
    if (before) return before.message;
    demand(
      !known.answers.some((answer) => answer.task === task),
      "another round of this was answered already.",
    );
    const newest = known.answers
      .filter((answer) => round.survey !== null && answer.survey === round.survey.name)
      .reduce((version, answer) => Math.max(version, answer.version ?? 0), 0);
    demand(
      round.survey === null || round.survey.version >= newest,
      `version ${newest} of the survey was answered already.`,
    );
    const spent = spentIn(known, now, task);
    for (const name of /** @type {const} */ (["epsilon", "delta"])) {
      const total = spent[name].plus(round.promise[name]);
      demand(
        total.atMost(Fraction.fromText(known[name])),
        `the budget of ${known.days} days does not allow this ${name}; nothing was answered.`,
      );
    }
    return null;
  }

  /**
   * @param {State | null} state
   * @param {import("./round.js").Round} round
   * @param {string} message
   */
  added(state, round, message) {
    const before = this.sent(state, round);
    if (before !== null) return { state: null, found: before };
    const known = state ?? this.empty;
    const now = this.now(known);
    const answers = known.answers.map((each) =>
      each.expires !== null && each.expires <= now ? { ...each, message: "" } : each,
    );
    answers.push({
      round: toHex(round.digest),
      task: toHex(round.task),
      epsilon: texted(round.promise.epsilon),
      delta: texted(round.promise.delta),
      time: now,
      survey: round.survey?.name ?? null,
      version: round.survey?.version ?? null,
      expires: round.survey?.expires ?? null,
      message,
    });
    return { state: { ...known, answers }, found: message };
  }

  /**
   * The time, or that of the newest answer if the clock was set back since.
   *
   * @param {State} state
   */
  now(state) {
    return state.answers.reduce((latest, answer) => Math.max(latest, answer.time), this.clock());
  }
}

/** A store that forgets: for tests, and for who keeps states elsewhere. @implements {Store} */
export class MemoryStore {
  /** @type {string | null} */
  kept = null;

  /**
   * @template T
   * @param {Change<T>} change
   */
  async transact(change) {
    const { state, found } = change(this.kept === null ? null : JSON.parse(this.kept));
    if (state !== null) this.kept = JSON.stringify(state);
    return found;
  }
}

/**
 * What tasks with an answer in the last days cost together.
 *
 * @param {State} state
 * @param {number} now
 * @param {string} apart a task that does not count
 */
function spentIn(state, now, apart) {
  const recent = state.answers.filter(
    (each) => each.time > now - state.days * DAY && each.task !== apart,
  );
  /** @param {"epsilon" | "delta"} name */
  const total = (name) =>
    recent.reduce((sum, each) => sum.plus(Fraction.fromText(each[name])), new Fraction(0n));
  return { epsilon: total("epsilon"), delta: total("delta") };
}

/** @param {State} state */
function checked(state) {
  demand(
    state.format === FORMAT && Array.isArray(state.answers),
    "the store holds something else than the account of a device.",
  );
  return state;
}

/** @param {Fraction} value */
function texted({ n, d }) {
  return `${n}/${d}`;
}

/** @param {Fraction} value */
function near({ n, d }) {
  return Number((n << 200n) / d) / 2 ** 200;
}

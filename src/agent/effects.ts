/** @pure file: every effect of every membership flow has a name, so that a test can end the agent before and after each. */

/** The names with what they do, in the order in which a flow meets them. docs/failure-modes.md is made from this. */
export const effects = {
  'record.create': 'the change record is created in etcd',
  'record.takeOver': "somebody else's change record, waited out, is rewritten",
  'record.sending': 'the change record says that the call is being sent',
  'record.clear': 'the change record is removed from etcd',
  'change.journal': 'the intent of the change is written to the journal',
  'change.addLearner': 'MemberAdd (learner) is sent',
  'change.promote': 'MemberPromote is sent',
  'change.remove': 'MemberRemove is sent',
  'change.updateUrls': 'MemberUpdate is sent',
  'change.moveLeader': 'MoveLeader is sent',
  'change.down': 'etcd is told to end, with the change record held',
  'change.done': 'what the change came to is written to the journal',
  'join.intend': 'the intent to join is written',
  'join.claim': 'the data volume gets its marker',
  'join.intent': 'the run intent says that etcd is to run',
  'join.added': 'the join is recorded as added',
  'join.identity': 'the new identity is written',
  'join.mark': 'the new data directory gets the mark of this join',
  'join.started': 'the join is recorded as started',
  'join.spawn': 'etcd is started as a joiner',
  'join.done': 'the join is recorded as done',
  'join.expired': 'a join is recorded as expired',
  'join.giveUp': 'a join that was cancelled is forgotten',
  'leave.intend': 'the intent to leave is written',
  'leave.refused': 'a leave that did not come to be is recorded as refused',
  'leave.removed': 'the own removal is recorded as done',
  'removal.tombstone': 'the tombstone of the removed member is written',
  'removal.report': 'the removal is accepted for upstream',
  'removal.intent': 'the run intent says that the member is removed',
  'removal.archive': 'the data directory is moved into the archive',
  'removal.archived': 'the tombstone names the archive',
  'regression.accept': "an operator's word for a log that went back is recorded",
  'shutdown.mark': 'the run directory says that the machine goes down',
  'stop.intent': 'the run intent says that etcd is stopped',
} as const;

export type EffectName = keyof typeof effects;

/** What the next agent does when this one was ended right before, in or right after the effect. */
export const recoveries: Readonly<Record<EffectName, string>> = {
  'record.create':
    'It makes the change again and replaces the record at once, since nothing was sent; if none is wanted any more, it clears the record.',
  'record.takeOver':
    'It waits out the record that it finds (its own at once), reads the list, reports what became of the change, and clears the record.',
  'record.sending':
    'It reads the list: a change that stands there is over; otherwise it waits until the call can no longer be on its way (18 s), and makes the change if it is still wanted.',
  'record.clear':
    'It finds its own record, sees in the list what became of the change, and clears the record; other nodes do the same after its time is over.',
  'change.journal': 'It makes the change again: nothing was sent.',
  'change.addLearner':
    'It finds its learner in the list by peer URL and intent and takes it up; if the add was not applied, it adds again once the call can no longer be on its way.',
  'change.promote': 'It reads the list: with its vote there it only clears the record, without it it asks again.',
  'change.remove':
    'It reads the list, or the own log, or asks the others: once the member is gone it goes on with tombstone, report and archive; otherwise it removes again.',
  'change.updateUrls': 'It reads the list and sends the update again if the old URLs stand there.',
  'change.moveLeader': 'It reads who leads now, and hands over only if that is still its own member.',
  'change.down': 'It sees etcd ending or ended, as the run intent says, and clears the record.',
  'change.done': 'It finds the change in the list, clears the record, and ends the entry in the journal.',
  'join.intend': 'It adds the learner with a new intent: nothing was sent under the old one.',
  'join.claim': 'It takes the learner up again; a marker that has no twin yet is used.',
  'join.intent': 'It takes the learner up again; nothing can be started before the identity is recorded.',
  'join.added':
    'It takes the learner up again; if the role no longer asks for it, it takes the learner out of the list.',
  'join.identity': 'It goes on with the mark if both records are there, and takes the learner up again if not.',
  'join.mark': 'It writes the mark again: a directory with nothing but the mark is no lost disk.',
  'join.started': 'It asks the others and starts etcd as a joiner, with the members of that moment.',
  'join.spawn': 'It adopts the etcd that runs; one that wrote nothing before it ended is started as a joiner again.',
  'join.done': 'It records the end of the join as soon as etcd is ready.',
  'join.expired': 'It goes on with the removal, and joins anew without a rest.',
  'join.giveUp': 'It looks once more whether a learner of the cancelled join is in the list, and forgets the intent.',
  'leave.intend': 'It leaves again, if the role still says so: nothing was sent.',
  'leave.refused': 'It leaves again if the role still says so; the intent alone proves nothing.',
  'leave.removed': 'It finds itself gone from the list and records that, or learns it from its own log or the others.',
  'removal.tombstone': 'It proves the removal again, or goes on with the tombstone that is there; nothing is started.',
  'removal.report': 'It reports the removal unless the outbox has it already.',
  'removal.intent':
    'It writes the run intent; nothing is stopped or moved before tombstone, report and intent are on disk.',
  'removal.archive': 'It moves the data directory to the same place; where that is done already it only goes on.',
  'removal.archived': 'It finds the archive of this tombstone and writes its place into it.',
  'regression.accept': 'It starts the member if the word is there, and holds it if not.',
  'shutdown.mark': 'It ends etcd with the machine if the mark is there, and lets it run if not.',
  'stop.intent': 'It stops etcd if the intent is there, and lets it run if not.',
};

/** A moment at which a test may end the agent: right before or right after one effect. */
export interface CrashPoint {
  readonly effect: EffectName;
  readonly moment: 'before' | 'after';
}

/** Told of every crash point that is passed. The real one does nothing; a test ends the agent there. */
export type AtCrashPoint = (point: CrashPoint) => void;

/** Does effects by their names. */
export class Effects {
  readonly #at: AtCrashPoint;

  constructor(at: AtCrashPoint = () => {}) {
    this.#at = at;
  }

  /** An effect that is over when `work` returns. */
  do<T>(effect: EffectName, work: () => T): T {
    this.#at({ effect, moment: 'before' });
    const result = work();
    this.#at({ effect, moment: 'after' });
    return result;
  }

  /** An effect that is over when the promise of `work` settles well. */
  async doing<T>(effect: EffectName, work: () => Promise<T>): Promise<T> {
    this.#at({ effect, moment: 'before' });
    const result = await work();
    this.#at({ effect, moment: 'after' });
    return result;
  }
}

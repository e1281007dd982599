import { addLine, type Evidence, emptyEvidence } from '../etcd/evidence.ts';
import { factOf, type LogFact } from '../etcd/facts.ts';
import { type AssemblerState, assemble, emptyAssembler, flush, type LogEntry } from '../etcd/log-assembler.ts';

/** What one line of etcd's log means to the agent. */
export interface News {
  readonly fact: LogFact;
  /** True after the serving line: before it, etcd replays its log, and what it says is old. */
  readonly fresh: boolean;
}

/**
 * Follows the log of the newest life of etcd: folds every line into the evidence by which its end is judged, and says
 * what is news.
 */
export class LifeWatch {
  #life = 0;
  #assembler: AssemblerState = emptyAssembler;
  #evidence: Evidence = emptyEvidence;

  get life(): number {
    return this.#life;
  }

  get evidence(): Evidence {
    return this.#evidence;
  }

  /** Takes one line of life `life`, in order; a line of a newer life begins anew. */
  take(life: number, line: string): readonly News[] {
    this.#begin(life);
    const { state, entries } = assemble(this.#assembler, line);
    this.#assembler = state;
    return entries.flatMap((entry) => this.#fold(entry));
  }

  /** All lines of a life are about to be taken anew. */
  forget(): void {
    this.#life = 0;
  }

  /** The life has ended and all its lines were taken: a trace that was still open is complete now. */
  end(life: number): Evidence {
    this.#begin(life);
    for (const entry of flush(this.#assembler)) this.#fold(entry);
    this.#assembler = emptyAssembler;
    return this.#evidence;
  }

  #begin(life: number): void {
    if (life === this.#life) return;
    this.#life = life;
    this.#assembler = emptyAssembler;
    this.#evidence = emptyEvidence;
  }

  #fold(entry: LogEntry): readonly News[] {
    const fresh = this.#evidence.served;
    this.#evidence = addLine(this.#evidence, entry);
    const fact = entry.kind === 'line' ? factOf(entry.line) : undefined;
    return fact === undefined ? [] : [{ fact, fresh }];
  }
}

/** What happened in a simulated run, as one hash: the same seed and schedule give the same. */
export class Trace {
  #first = 0x811c9dc5;
  #second = 0x9747b28c;
  #kept: string[] | undefined;
  #count = 0;

  /** Keeps the text of every event from now on, for a run that is looked into. */
  keep(): void {
    this.#kept = [];
  }

  /** One event at `atMs`; `who` and `what` are short. */
  note(atMs: number, who: string, what: string): void {
    this.#count++;
    this.#mix(Math.round(atMs * 1_000));
    for (let index = 0; index < who.length; index++) this.#mix(who.charCodeAt(index));
    for (let index = 0; index < what.length; index++) this.#mix(what.charCodeAt(index));
    this.#kept?.push(`${atMs.toFixed(1).padStart(9)}  ${who.padEnd(5)} ${what}`);
  }

  /** 16 hex digits. */
  get hash(): string {
    return (this.#first >>> 0).toString(16).padStart(8, '0') + (this.#second >>> 0).toString(16).padStart(8, '0');
  }

  /** How many events there were. */
  get count(): number {
    return this.#count;
  }

  /** The events, if they were kept. */
  get lines(): readonly string[] {
    return this.#kept ?? [];
  }

  #mix(value: number): void {
    this.#first = Math.imul(this.#first ^ value, 0x01000193);
    this.#second = Math.imul(this.#second ^ (value + (this.#first >>> 7)), 0x85ebca6b);
  }
}

import { InvalidArgumentError } from 'commander';
import { parseDuration } from './units.ts';

/** Readers of command line values. Each throws InvalidArgumentError, which is a mistake in usage. */
export const read = {
  /** `2h` → ms, from 1 s to 7 days. */
  pauseLength(text: string): number {
    const ms = parseDuration(text);
    if (ms !== undefined && ms >= 1000 && ms <= 7 * 86_400_000) return ms;
    throw new InvalidArgumentError('Want a duration such as 30m, 2h or 1d, from 1s to 7d.');
  },

  /** An id of etcd in hex, as etcd, etcdctl and we print it; `0x` and capitals are forgiven. */
  hexId(text: string): string {
    const id = text.toLowerCase().replace(/^0x/, '');
    if (/^[0-9a-f]{1,16}$/.test(id)) return id.replace(/^0+(?=.)/, '');
    throw new InvalidArgumentError('Want an id in hex, such as 8e9e05c52164694d.');
  },

  /** A whole number between two bounds. */
  whole: (least: number, most: number) => (text: string) => {
    const value = Number(text);
    if (/^\d{1,16}$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Want a whole number from ${least} to ${most}.`);
  },

  /** One line of words, not empty. */
  reason(text: string): string {
    if (text.trim() !== '' && text.length <= 500 && !/\p{Cc}/u.test(text)) return text;
    throw new InvalidArgumentError('Want one line of at most 500 characters.');
  },
};

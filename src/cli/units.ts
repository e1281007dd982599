/** @pure file: durations and sizes as operators write them. */

/**
 * @pure `500ms`, `10s`, `5m`, `4h`, `7d` → ms; undefined if it is not of that form. One whole number and one unit, so that
 * there is one way to write it.
 */
export function parseDuration(text: string): number | undefined {
  return parse(text, durationUnits);
}

/** @pure The shortest text that {@link parseDuration} reads back as `ms`. */
export function formatDuration(ms: number): string {
  return format(ms, durationUnits);
}

/** @pure `512B`, `64KiB`, `64MiB`, `2GiB` → bytes; undefined if it is not of that form. */
export function parseSize(text: string): number | undefined {
  return parse(text, sizeUnits);
}

/** @pure The shortest text that {@link parseSize} reads back as `bytes`. */
export function formatSize(bytes: number): string {
  return format(bytes, sizeUnits);
}

type Units = readonly (readonly [name: string, factor: number])[];

/** Largest first. */
const durationUnits: Units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
];
const sizeUnits: Units = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
  ['B', 1],
];

function parse(text: string, units: Units): number | undefined {
  const match = /^(\d{1,12})([A-Za-z]{1,3})$/.exec(text);
  const factor = units.find(([name]) => name === match?.[2])?.[1];
  return factor === undefined ? undefined : Number(match?.[1]) * factor;
}

function format(value: number, units: Units): string {
  const [name, factor] = units.find(([, each]) => value >= each && value % each === 0) ?? units.at(-1) ?? ['', 1];
  return `${value / factor}${name}`;
}

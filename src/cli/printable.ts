/** @pure file: foreign text made safe for a terminal and for a log. */

/**
 * @pure The text in one line, without a character that could move a terminal's cursor, colour it, forge a line or turn the
 * reading direction: control characters (C0, DEL, C1), line separators and bidirectional marks become `\x1b`, `\u202e`.
 * Longer text is cut at `maxLength` characters, and says so.
 */
export function printable(text: string, maxLength = 8192): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}… (${text.length} characters)` : text;
  return cut.replace(unsafe, escapeOne);
}

// Control characters are the point of this expression.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const unsafe = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

function escapeOne(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return ' ';
  const code = character.charCodeAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

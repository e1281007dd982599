/** @pure file: the checksum of etcd's write-ahead log. */

/**
 * @pure CRC-32C (Castagnoli) of `bytes`, continued from `previous` (0 at the start): etcd chains the checksum of each
 * record to the one before it. Source: etcd's `server/storage/wal` (table `crc32.Castagnoli`).
 */
export function crc32c(bytes: Uint8Array, previous = 0): number {
  let crc = ~previous;
  for (let index = 0; index < bytes.length; index++) {
    crc = (table[(crc ^ (bytes[index] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

const table: Int32Array = Int32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0x82f63b78 ^ (value >>> 1) : value >>> 1;
  return value;
});

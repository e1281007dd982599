import type { Disk } from '../base/disk.ts';
import { AgentError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import type { Host } from './host.ts';
import type { Layout } from './layout.ts';
import type { Volume } from './observed.ts';
import type { DurableValue } from './state/durable-value.ts';
import type { volumeSchema } from './state/schemas.ts';

/** The data root is not the volume that the configuration demands; nothing was written. */
export class VolumeRefusedError extends AgentError {
  readonly code = 'VOLUME_REFUSED';
}

/**
 * The volume that carries the data. A marker in the data root, with its twin in the state directory, tells a volume that
 * is not mounted from a disk that lost its data.
 */
export class DataVolume {
  readonly #options: VolumeOptions;

  constructor(options: VolumeOptions) {
    this.#options = options;
  }

  look(): Volume {
    const { record, disk, layout, mustBeMount, host } = this.#options;
    const reading = record.read();
    if (reading.kind === 'absent') return { kind: 'unused' };
    if (reading.kind !== 'ok') return { kind: 'unknown', because: reading.because };
    try {
      const found = disk.read(layout.volumeMarker);
      const matches = found !== undefined && new TextDecoder().decode(found).trim() === reading.value.marker;
      if (!matches) return { kind: 'missing', path: layout.dataRoot };
      if (mustBeMount && !host.isMountPoint(layout.dataRoot)) return { kind: 'missing', path: layout.dataRoot };
      return { kind: 'present' };
    } catch (error) {
      return { kind: 'unknown', because: `${layout.volumeMarker} cannot be read: ${String(error)}` };
    }
  }

  /**
   * Claims the data root of now in place of a volume that is lost for good; an operator's order. Throws
   * {@link VolumeRefusedError} if the data root must be a mount point and is none, or carries another node's marker.
   */
  replaceMarker(): void {
    const { record, disk, layout, mustBeMount, host, random } = this.#options;
    if (mustBeMount && !host.isMountPoint(layout.dataRoot)) {
      throw new VolumeRefusedError(`${layout.dataRoot} is not a mount point, and mustBeMount demands one`, {
        hint: 'Mount the new data volume there.',
      });
    }
    const marker = random.hex(16);
    disk.ensureDirectory(layout.dataRoot);
    disk.replace(layout.volumeMarker, `${marker}\n`);
    record.write({ marker, dataRoot: layout.dataRoot, ownVolume: host.isMountPoint(layout.dataRoot) });
  }

  /**
   * Writes the marker once, before the first data. Harmless if it is there. Throws {@link VolumeRefusedError} if the data
   * root must be a mount point and is none, or if a marker that is not ours lies there.
   */
  claim(): void {
    const { record, disk, layout, mustBeMount, host, random } = this.#options;
    if (mustBeMount && !host.isMountPoint(layout.dataRoot)) {
      throw new VolumeRefusedError(`${layout.dataRoot} is not a mount point, and mustBeMount demands one`, {
        hint: 'Mount the data volume there, or set mustBeMount to false.',
      });
    }
    const reading = record.read();
    if (reading.kind === 'ok') {
      if (this.look().kind === 'present') return;
      throw new VolumeRefusedError(`${layout.dataRoot} does not carry the marker of this node's data volume`, {
        hint: 'Mount the right volume. See docs/runbook.md, "the data volume is missing".',
      });
    }
    if (reading.kind !== 'absent')
      throw new VolumeRefusedError(reading.because, { hint: 'See docs/runbook.md, "state that cannot be read".' });
    disk.ensureDirectory(layout.dataRoot);
    const left = disk.read(layout.volumeMarker);
    // A crash between the two writes leaves a marker without its twin: it is taken up again.
    const marker = left === undefined ? random.hex(16) : new TextDecoder().decode(left).trim();
    if (left === undefined) disk.replace(layout.volumeMarker, `${marker}\n`);
    record.write({ marker, dataRoot: layout.dataRoot, ownVolume: host.isMountPoint(layout.dataRoot) });
  }
}

export interface VolumeOptions {
  readonly record: DurableValue<typeof volumeSchema>;
  readonly disk: Disk;
  readonly host: Host;
  readonly random: Random;
  readonly layout: Layout;
  /** Demand that the data root is a mount point, from the first start. Default false. */
  readonly mustBeMount: boolean;
}

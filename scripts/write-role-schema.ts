/** Writes docs/role.schema.json from src/upstream/role.ts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { roleJsonSchema } from '../src/upstream/role.ts';

const path = join(import.meta.dirname, '..', 'docs', 'role.schema.json');
writeFileSync(path, `${JSON.stringify(roleJsonSchema(), null, 2)}\n`);

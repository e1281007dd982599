import * as z from 'zod';
import { roleSchema } from '../../upstream/role.ts';
import type { AgentControl } from '../control.ts';
import type { App } from './routes.ts';
import { queries } from './schemas.ts';

const { role, grantId, endpoints } = roleSchema.shape;
const dryRun = z.boolean().default(false);

const bodies = {
  switchSource: z.strictObject({
    file: z
      .string()
      .max(4096)
      .regex(/^\/[^\0]*$/, 'must be an absolute path'),
    accept: z.boolean().default(false),
    dryRun,
  }),
  set: z.strictObject({
    role,
    grantId: grantId.optional(),
    endpoints: endpoints.unwrap().optional(),
    acceptZeroTolerance: z.boolean().default(false),
    withoutRecord: z.boolean().default(false),
    dryRun,
  }),
};

/** The routes of `role`. */
export function addRoleRoutes(app: App, control: AgentControl): void {
  const querystring = queries.nothing;
  app.get('/v1/role', { schema: { querystring } }, () => control.role.show());
  app.post('/v1/role/switch-source', { schema: { querystring, body: bodies.switchSource } }, ({ body }) =>
    control.role.switchSource(body),
  );
  app.post('/v1/role/set', { schema: { querystring, body: bodies.set } }, ({ body }) =>
    control.role.set({ ...body, grantId: body.grantId, endpoints: body.endpoints }),
  );
}

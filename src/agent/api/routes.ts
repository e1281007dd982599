import type { FastifyInstance, FastifyReply, FastifyRequest, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { AgentError } from '../../base/errors.ts';
import type { AgentControl, EventQuery } from '../control.ts';
import { streamEvents, streamLogs } from './follow.ts';
import { addRoleRoutes } from './role-routes.ts';
import { bodies, queries } from './schemas.ts';
import type { EventStream } from './stream.ts';

/** The API cannot serve one more reader that follows something. */
export class TooManyStreamsError extends AgentError {
  readonly code = 'API_TOO_MANY_STREAMS';
}

/** A combination of query fields that makes no sense. */
export class BadQueryError extends AgentError {
  readonly code = 'API_BAD_QUERY';
}

/** What the routes need. */
export interface RouteDeps {
  readonly control: AgentControl;
  /** Takes the response over and opens a stream on it. Throws TooManyStreamsError. */
  openStream(reply: FastifyReply): EventStream;
  /** A stream failed after its headers were sent. */
  onStreamError(error: unknown): void;
}

/** The server, with bodies and queries checked by zod. */
export type App = FastifyInstance<
  RawServerDefault,
  FastifyRequest['raw'],
  FastifyReply['raw'],
  FastifyInstance['log'],
  ZodTypeProvider
>;

/** One route for each method of AgentControl; docs/commands.md lists them beside the commands. */
export function addRoutes(app: App, deps: RouteDeps): void {
  addReads(app, deps);
  addFollows(app, deps);
  addCommands(app, deps.control);
  addRoleRoutes(app, deps.control);
}

function addReads(app: App, { control }: RouteDeps): void {
  const schema = { querystring: queries.nothing };
  app.get('/v1/status', { schema }, () => control.status());
  app.get('/v1/plan', { schema }, () => control.plan());
  app.get('/v1/why', { schema }, () => control.why());
  app.get('/v1/members', { schema }, () => control.members());
  app.get('/metrics', { schema }, async (_request, reply) => {
    return reply.type(metricsContentType).send(await control.metrics());
  });
}

/** Content type of the Prometheus text format. */
export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';

function addFollows(app: App, { control, openStream, onStreamError }: RouteDeps): void {
  app.get('/v1/events', { schema: { querystring: queries.events } }, (request, reply) => {
    const { after, limit, follow } = request.query;
    if (!follow) return reply.send(control.events({ after, limit }));
    const stream = openStream(reply);
    endOnError(stream, onStreamError, () =>
      streamEvents(control, { ...(resumeAfter(request) ?? { after }), limit }, stream),
    );
    return reply;
  });
  app.get('/v1/logs', { schema: { querystring: queries.logs } }, async (request, reply) => {
    const { life, lines, follow } = request.query;
    if (!follow) return control.logs({ life, lines });
    if (life !== undefined) throw new BadQueryError('a life that is named cannot be followed; follow shows the newest');
    const stream = openStream(reply);
    endOnError(stream, onStreamError, () => streamLogs(control, lines, stream));
    return reply;
  });
}

/** A browser's or curl's word for the last id it has seen, `STREAM/NUMBER` or a number; anything else in its place is ignored. */
function resumeAfter(request: FastifyRequest): Pick<EventQuery, 'after' | 'stream'> | undefined {
  const header = request.headers['last-event-id'];
  const [, stream, after] = /^(?:([\w-]{1,64})\/)?(\d{1,15})$/.exec(typeof header === 'string' ? header : '') ?? [];
  return after === undefined ? undefined : { after: Number(after), stream };
}

function endOnError(stream: EventStream, report: (error: unknown) => void, run: () => void | Promise<void>): void {
  const fail = (error: unknown): void => {
    if (!stream.signal.aborted) report(error);
    stream.end();
  };
  try {
    Promise.resolve(run()).catch(fail);
  } catch (error) {
    fail(error);
  }
}

function addCommands(app: App, control: AgentControl): void {
  const { nothing, dryRun, member } = bodies;
  const querystring = queries.nothing;
  app.post('/v1/stop', { schema: { querystring, body: bodies.stop } }, ({ body }) => control.stop(body));
  app.post('/v1/start', { schema: { querystring, body: bodies.start } }, ({ body }) => control.start(body));
  app.post('/v1/shutdown', { schema: { querystring, body: dryRun } }, ({ body }) => control.shutdown(body));
  app.post('/v1/pause', { schema: { querystring, body: bodies.pause } }, ({ body }) => control.pause(body));
  app.post('/v1/resume', { schema: { querystring, body: nothing } }, () => control.resume());
  app.post('/v1/reload', { schema: { querystring, body: nothing } }, () => control.reload());
  app.post('/v1/found', { schema: { querystring, body: bodies.found } }, ({ body }) => control.found(body));
  app.post('/v1/found/prepare', { schema: { querystring, body: nothing } }, () => control.foundPrepare());
  app.post('/v1/found/list', { schema: { querystring, body: bodies.foundList } }, ({ body }) =>
    control.foundList(body),
  );
  app.post('/v1/adopt', { schema: { querystring, body: bodies.adopt } }, ({ body }) => {
    return control.adopt({ dryRun: body.dryRun, newClusterId: body.newClusterId });
  });
  app.post('/v1/confirm-removed', { schema: { querystring, body: member } }, ({ body }) =>
    control.confirmRemoved(body),
  );
  app.post('/v1/reject-removal', { schema: { querystring, body: member } }, ({ body }) => control.rejectRemoval(body));
  const order = bodies.memberOrder;
  app.post('/v1/members/evict', { schema: { querystring, body: order } }, ({ body }) => control.evictMember(body));
  app.post('/v1/replace', { schema: { querystring, body: order } }, ({ body }) => control.replaceMember(body));
  app.post('/v1/join', { schema: { querystring, body: bodies.join } }, ({ body }) => {
    return control.join({ ...body, clusterId: body.clusterId });
  });
  app.post('/v1/leave', { schema: { querystring, body: bodies.leave } }, ({ body }) => control.leave(body));
  app.post('/v1/retire', { schema: { querystring, body: bodies.retire } }, ({ body }) => control.retire(body));
  app.post('/v1/events/skip', { schema: { querystring, body: bodies.skip } }, ({ body }) => {
    return control.skipEvent(body.seq, body.reason);
  });
}

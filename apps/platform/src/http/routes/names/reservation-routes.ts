// Names and ports of an account over HTTP.
import { z } from '@hono/zod-openapi';
import { newReservation, reservation, reservations } from '@tunnel/contract';
import type { NameSettings } from '../../../services/names/name-rows.ts';
import { listReservations, releaseReservation } from '../../../services/names/reservations.ts';
import { reserve } from '../../../services/names/reserve.ts';
import type { PlatformApp, UserRouteContext } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, jsonBody, refused, userRoutes, writesPerDay } from '../../shared/route-parts.ts';

const userRoute = userRoutes(EXTENSIONS);

const listRoute = userRoute('get', '/reservations', {
  summary: 'Your names and ports: reserved, held by use, and released',
  responses: { 200: json(reservations, 'All that others cannot have because of you.') },
});

const reserveRoute = userRoute('post', '/reservations', {
  summary: 'Reserve a name or a port: it stays yours, used or not, until you release it',
  request: { body: jsonBody(newReservation) },
  responses: {
    200: json(reservation, 'It was reserved by you already.'),
    201: json(reservation, 'It is reserved now; one that you held or had released keeps its id.'),
    400: refused(
      'Not a name or a port that can be reserved, a port out of range, or a region that is unknown or missing.',
      'TUNNEL_SUBDOMAIN_INVALID',
      { subdomain: 'www', reason: 'it is reserved' },
    ),
    403: refused(
      'The plan allows no more, or no names of your choice; or the account is suspended.',
      'RESERVATION_LIMIT',
      { limit: 3 },
    ),
    409: refused('It is another account’s, or served by another’s tunnel now.', 'TUNNEL_SUBDOMAIN_IN_USE', {
      subdomain: 'shop',
    }),
    503: refused('No port is free, or those that are free are kept for other accounts.', 'TUNNEL_PORT_LIMIT', {
      reason: 'this account has 25 of the tcp ports 20000-20099, and what is free is kept for others',
    }),
    429: writesPerDay,
  },
});

const releaseRoute = userRoute('delete', '/reservations/{id}', {
  summary: 'Release a name or a port: a living tunnel stays, and for a while only you can have it again',
  request: { params: z.object({ id: z.string().meta({ description: 'The id of the reservation.' }) }) },
  responses: {
    204: { description: 'It is released.' },
    404: refused('No such reservation, or not yours.', 'RESERVATION_UNKNOWN'),
  },
});

export interface ReservationRouteDeps extends UserRouteContext {
  readonly names: NameSettings;
  readonly accountShare: number;
  readonly platformLabel?: string | null;
}

export const addReservationRoutes = (app: PlatformApp, deps: ReservationRouteDeps): void => {
  app.use('/reservations/*', deps.requireUser);
  app.openapi(listRoute, async (context) => context.json(await listReservations(deps, context.get('actor')), 200));
  app.openapi(reserveRoute, async (context) => {
    const { reservation: made, isNew } = await reserve(deps, context.get('actor'), context.req.valid('json'));
    return context.json(made, isNew ? 201 : 200);
  });
  app.openapi(releaseRoute, async (context) => {
    await releaseReservation(deps, context.get('actor'), context.req.valid('param').id);
    return context.body(null, 204);
  });
};

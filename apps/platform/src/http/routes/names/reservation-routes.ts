// Routes for an account's names and ports.
import { z } from '@hono/zod-openapi';
import { newReservation, reservation, reservations } from '@tunnel/contract';
import type { NameSettings } from '../../../services/names/name-rows.ts';
import { listReservations, releaseReservation } from '../../../services/names/reservations.ts';
import { reserve } from '../../../services/names/reserve.ts';
import type { PlatformApp, UserRouteContext } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, jsonBody, refused, userRoutes, writesPerDay } from '../../shared/route-parts.ts';

const userRoute = userRoutes(EXTENSIONS);

const listRoute = userRoute('get', '/reservations', {
  summary: 'List reserved, held and released names and ports',
  responses: { 200: json(reservations, 'Every name and port unavailable to other accounts because of this account.') },
});

const reserveRoute = userRoute('post', '/reservations', {
  summary: 'Reserve a name or port until it is released',
  request: { body: jsonBody(newReservation) },
  responses: {
    200: json(reservation, 'The account had already reserved the name or port.'),
    201: json(reservation, 'The name or port is reserved. A held or released entry keeps its id.'),
    400: refused(
      'The name or port cannot be reserved, the port is out of range, or the region is unknown or missing.',
      'TUNNEL_SUBDOMAIN_INVALID',
      { subdomain: 'www', reason: 'it is reserved' },
    ),
    403: refused(
      "The plan's limit is reached, the plan does not allow custom names, or the account is suspended.",
      'RESERVATION_LIMIT',
      { limit: 3 },
    ),
    409: refused('Another account has the name or port, or has a tunnel open on it.', 'TUNNEL_SUBDOMAIN_IN_USE', {
      subdomain: 'shop',
    }),
    503: refused('No port is free, or the free ports are kept for other accounts.', 'TUNNEL_PORT_LIMIT', {
      reason: 'this account has 25 of the tcp ports 20000-20099, and the free ports are kept for other accounts',
    }),
    429: writesPerDay,
  },
});

const releaseRoute = userRoute('delete', '/reservations/{id}', {
  summary:
    'Release a name or port; an open tunnel stays open, and for a while only the same account can reserve it again',
  request: { params: z.object({ id: z.string().meta({ description: 'The id of the reservation.' }) }) },
  responses: {
    204: { description: 'The name or port is released.' },
    404: refused('The reservation does not exist or belongs to another account.', 'RESERVATION_UNKNOWN'),
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

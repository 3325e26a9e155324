// Schemas of reservations in the platform API: names and ports that belong to an account because the account reserved or used them.
import * as z from 'zod';

const count = z.int().min(0);

export const reservationKind = z.enum(['subdomain', 'tcp', 'udp']);
export type ReservationKind = z.infer<typeof reservationKind>;

export const reservationState = z.enum(['reserved', 'held', 'released']);
export type ReservationState = z.infer<typeof reservationState>;

export const reservation = z
  .object({
    id: z.string().meta({ examples: ['3f0a7c52-90b1-4c6e-9d0e-5f1b2a8c7d64'] }),
    kind: reservationKind,
    label: z.string().meta({ description: 'The reserved name, or the port as text.', examples: ['shop'] }),
    region_id: z
      .string()
      .nullable()
      .meta({
        description: 'The region of the port. Null for subdomains, which are reserved in every region.',
        examples: [null],
      }),
    state: reservationState.meta({
      description:
        '`reserved`: kept until released. `held`: kept until `expires_at` because a tunnel used the name. `released`: released or expired; until `expires_at` only the same account can take the name.',
    }),
    assigned: z.boolean().optional().meta({
      description:
        'True for a random name assigned by the edge and held for a few hours; lists collapse random names. False for a chosen name or port. Omitted by older platforms.',
    }),
    public_address: z.string().meta({
      description:
        'The public address of the name or port. Empty until an edge of the region has connected to the platform.',
      examples: ['http://shop.localhost:8000'],
    }),
    active_tunnels: count.meta({
      description: 'The number of tunnels open under the name or port right now, including nested names.',
    }),
    created_at: z.iso.datetime(),
    last_used_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'The last time a tunnel used the name or port, or null if never used.' }),
    expires_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'The end of the current state. Null while reserved or in use.' }),
    hold_seconds: count.optional().meta({
      description:
        'How long an unreserved name is held after the last tunnel closes, in seconds. 0 for ports, which are not held. Omitted by older platforms.',
      examples: [2_592_000],
    }),
    grace_seconds: count.optional().meta({
      description:
        'How long a released name or port stays available only to the same account, in seconds. Omitted by older platforms.',
      examples: [604_800],
    }),
  })
  .meta({ id: 'Reservation' });
export type Reservation = z.infer<typeof reservation>;

export const reservations = z.array(reservation).meta({ description: 'Oldest first.' });

/**
 * Additional constraints per kind of reservation, for the OpenAPI document only. The server checks the constraints separately, because
 * code can report mistakes more clearly than a pattern.
 */
const SUBDOMAIN_LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const WANTED_SUBDOMAIN = {
  title: 'A subdomain (no region)',
  properties: {
    kind: { const: 'subdomain' },
    label: { type: 'string', pattern: `^(\\*\\.)?${SUBDOMAIN_LABEL}$` },
  },
  not: { properties: { region_id: { type: 'string' } }, required: ['region_id'] },
};
const WANTED_PORT = {
  title: 'A port',
  properties: {
    kind: { enum: ['tcp', 'udp'] },
    label: { type: 'string', pattern: '^[1-9][0-9]{0,4}$' },
  },
};

export const newReservation = z
  .object({
    kind: reservationKind,
    label: z
      .string()
      .max(300)
      .optional()
      .meta({
        description:
          'A subdomain, `*.NAME` below a reserved name, or a port as text. Omitted: a free port, or a random name.',
        examples: ['shop'],
      }),
    region_id: z
      .string()
      .max(100)
      .optional()
      .meta({ description: 'The region of the port. Required if there are several regions.', examples: ['local'] }),
  })
  .meta({
    id: 'NewReservation',
    anyOf: [WANTED_SUBDOMAIN, WANTED_PORT],
    examples: [{ kind: 'subdomain', label: 'shop' }],
  });
export type NewReservation = z.infer<typeof newReservation>;

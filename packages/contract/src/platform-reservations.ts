// Reservations in the platform API: names and ports that are an account's, by an explicit act or by use.
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
    label: z.string().meta({ description: 'The name, or the port as text.', examples: ['shop'] }),
    region_id: z
      .string()
      .nullable()
      .meta({
        description: 'Where the port is. null for subdomains: they are yours in all regions.',
        examples: [null],
      }),
    state: reservationState.meta({
      description:
        '`reserved`: yours until you release it. `held`: yours by use, until `expires_at`. `released`: given back or run out; until `expires_at` only you can have it.',
    }),
    assigned: z.boolean().optional().meta({
      description:
        'true: a name that the edge chose for a tunnel that asked for none, held for some hours only; lists fold such names. false: a name or port that somebody chose. Absent from platforms that do not tell.',
    }),
    public_address: z.string().meta({
      description: 'Where visitors reach a tunnel on it. Empty: no edge of the region was heard yet.',
      examples: ['http://shop.localhost:8000'],
    }),
    active_tunnels: count.meta({ description: 'Tunnels that serve it right now, nested names included.' }),
    created_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable().meta({ description: 'When a tunnel last served it; null: never.' }),
    expires_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'When this state ends; null while it is reserved or in use.' }),
    hold_seconds: count.optional().meta({
      description:
        'How long it stays yours after its last tunnel has ended, unless it is reserved. 0: not at all, as ports. Absent from platforms that do not tell.',
      examples: [2_592_000],
    }),
    grace_seconds: count.optional().meta({
      description: 'How long only you can have it again after it was released. Absent from platforms that do not tell.',
      examples: [604_800],
    }),
  })
  .meta({ id: 'Reservation' });
export type Reservation = z.infer<typeof reservation>;

export const reservations = z.array(reservation).meta({ description: 'Oldest first.' });

/** What each kind may say besides, for the document: who reads a request tells a person more of what is wrong than a pattern could. */
const SUBDOMAIN_LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const WANTED_SUBDOMAIN = {
  title: 'A subdomain, which is of no region',
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
          'A subdomain, `*.NAME` of a name of yours, or a port as text. Left out: a free port, or a name that nobody guesses.',
        examples: ['shop'],
      }),
    region_id: z
      .string()
      .max(100)
      .optional()
      .meta({ description: 'For ports, where there are several regions.', examples: ['local'] }),
  })
  .meta({
    id: 'NewReservation',
    anyOf: [WANTED_SUBDOMAIN, WANTED_PORT],
    examples: [{ kind: 'subdomain', label: 'shop' }],
  });
export type NewReservation = z.infer<typeof newReservation>;

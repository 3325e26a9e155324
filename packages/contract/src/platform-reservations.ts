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
  })
  .meta({ id: 'Reservation' });
export type Reservation = z.infer<typeof reservation>;

export const reservations = z.array(reservation).meta({ description: 'Oldest first.' });

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
  .meta({ id: 'NewReservation' });
export type NewReservation = z.infer<typeof newReservation>;

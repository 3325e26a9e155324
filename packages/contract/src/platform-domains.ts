// Schemas of custom domains in the platform API: host names that an account has verified by DNS.
import * as z from 'zod';

const count = z.int().min(0);
const when = z.iso.datetime().nullable();

export const domainState = z.enum(['pending', 'verified', 'failed', 'lapsed']);
export type DomainStateName = z.infer<typeof domainState>;

export const domainRecord = z
  .object({
    type: z.enum(['CNAME', 'A', 'AAAA', 'TXT']),
    name: z.string().meta({ examples: ['shop.example.com'] }),
    value: z.string().meta({ examples: ['k3v7q2m5x4n6p7r2t3wa.tunnels.example.net'] }),
    purpose: z.enum(['route', 'proof', 'challenge']).meta({
      description:
        'The purpose of the record. `route`: points visitors to the server. `proof`: proves ownership (a CNAME also routes visitors). `challenge`: required for a wildcard certificate.',
    }),
    found: z.boolean().meta({ description: 'Whether the last check found the record.' }),
  })
  .meta({ id: 'DomainRecord' });
export type DomainRecord = z.infer<typeof domainRecord>;

export const domainCertificate = z
  .object({
    state: z.enum(['none', 'ordering', 'valid', 'renewing', 'failing']),
    issuer: z.string().nullable(),
    not_before: when,
    not_after: when,
    renew_at: when,
    last_error: z.string().nullable(),
  })
  .meta({ id: 'DomainCertificate' });
export type DomainCertificate = z.infer<typeof domainCertificate>;

export const ownDomain = z
  .object({
    id: z.string().meta({ examples: ['6b1f0c1e-6f0b-4a57-9a56-0d6c2b3a4e5f'] }),
    name: z
      .string()
      .meta({ description: 'A host name, or a wildcard such as `*.example.com`.', examples: ['shop.example.com'] }),
    wildcard: z.boolean(),
    state: domainState.meta({
      description:
        'The state of the domain. `pending`: DNS checks are running. `verified`: tunnels can use the domain. `failed`: no records were found for three days; a new check restarts verification. `lapsed`: the proof record is gone, or another account has verified the domain.',
    }),
    token: z.string().meta({
      description:
        "The account's verification token for the domain. Removing and re-adding the domain keeps the token.",
    }),
    cname_target: z.string(),
    records: z.array(domainRecord),
    certificate: domainCertificate
      .nullable()
      .meta({ description: 'The certificate, or null if certificates are turned off for the domain.' }),
    active_tunnels: count,
    created_at: z.iso.datetime(),
    verified_at: when,
    checked_at: when,
    last_error: z.string().nullable(),
  })
  .meta({ id: 'Domain' });
export type OwnDomainView = z.infer<typeof ownDomain>;

export const ownDomains = z.array(ownDomain).meta({ description: 'Oldest first.' });

export const newDomain = z
  .object({
    name: z
      .string()
      .min(1)
      .max(300)
      .meta({ examples: ['shop.example.com'] }),
    certificate: z.boolean().optional().meta({
      description: 'Whether to issue a certificate. Omitted: true for a new domain, unchanged for an existing domain.',
    }),
  })
  .meta({ id: 'NewDomain' });
export type NewDomain = z.input<typeof newDomain>;

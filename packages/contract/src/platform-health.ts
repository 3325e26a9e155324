// The small bodies of the platform API's health probes.
import * as z from 'zod';

export const okBody = z.object({ ok: z.boolean().meta({ examples: [true] }) }).meta({ id: 'Ok' });
export type OkBody = z.infer<typeof okBody>;

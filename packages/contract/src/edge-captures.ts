// Captured requests of http tunnels, as the edge's REST shows them and the platform passes them on.
import * as z from 'zod';

const size = z.int().min(0);
const headers = z.record(z.string(), z.string());
const body = z.string().nullable();

export const CAPTURE_LIST_LIMIT = { default: 50, min: 1, max: 100 } as const;

export const capturedRequest = z
  .object({
    id: z.string().meta({ examples: ['req_k3b9f200001c'] }),
    tunnel_id: z.string().meta({ description: 'The tunnel that served it: in a group, the member.' }),
    at: z.iso.datetime().meta({ description: 'When its head came.' }),
    method: z.string(),
    path: z.string().meta({ description: 'With its query; secrets in it are redacted.' }),
    status: z.int().nullable().meta({ description: 'null: no answer yet, or none before the visitor left.' }),
    duration_ms: z.number().min(0).nullable().meta({ description: 'null: it is under way.' }),
    request_headers: headers.meta({ description: 'Names in lower case; secrets are redacted.' }),
    response_headers: headers.meta({ description: 'Of the local service; empty when the edge itself answered.' }),
    request_size: size.meta({ description: 'Bytes of the body, as far as it came.' }),
    response_size: size.meta({ description: 'Bytes of the body, as far as it came.' }),
    request_body: body.meta({
      description: 'The first 16 KiB when it is text and captures keep bodies; for the owner of the tunnel only.',
    }),
    response_body: body.meta({ description: 'As request_body; unpacked when it was compressed.' }),
    aborted: z.boolean().meta({ description: 'The visitor left, or the answer was cut off.' }),
    error: z.string().nullable().meta({ description: 'The code of what went wrong; docs/errors.md lists them.' }),
    replayable: z.boolean().meta({ description: 'It was kept whole, and can be sent again.' }),
    replay_of: z.string().optional().meta({ description: 'It was sent by a replay: the id of the original.' }),
  })
  .meta({ id: 'CapturedRequest' });
export type CapturedRequest = z.infer<typeof capturedRequest>;

export const captureList = z
  .object({
    tunnel_id: z.string(),
    requests: z.array(capturedRequest).meta({ description: 'Newest first.' }),
    truncated: z.boolean().meta({ description: 'There were older ones than these.' }),
  })
  .meta({ id: 'CaptureList' });
export type CaptureList = z.infer<typeof captureList>;

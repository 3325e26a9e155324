// Bodies of the edge link: parses the requests of edges, and streams lines as fast as the edge reads.
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import type * as z from 'zod';
import type { PlatformEnv } from '../../shared/platform-env.ts';

/** Headers of a streamed response. `x-accel-buffering` is for nginx, which otherwise holds lines back until a buffer is full. */
export const LINES = { 'content-type': 'application/x-ndjson', 'x-accel-buffering': 'no' };

const encoder = new TextEncoder();
const encode = (lines: readonly object[]): Uint8Array =>
  encoder.encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

/** Streams pages of lines. However many lines there are, only a page is in memory. A stream that breaks off lacks its last line. */
export const linesBody = (
  pages: AsyncGenerator<readonly object[], void>,
  onBroken: (error: unknown) => void = () => {},
): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { value, done } = await pages.next();
          if (done === true) controller.close();
          else controller.enqueue(encode(value));
        } catch (error) {
          onBroken(error);
          throw error;
        }
      },
      cancel: async () => {
        await pages.return();
      },
    },
    { highWaterMark: 1 },
  );

/** Parses a JSON body with a schema. Throws API_BAD_REQUEST if the body does not match. */
export const readBody = async <T extends z.ZodType>(context: Context<PlatformEnv>, schema: T): Promise<z.output<T>> => {
  const result = schema.safeParse(await jsonOf(context));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Fault('API_BAD_REQUEST', { reason: `${issue?.path.join('.') || 'body'}: ${issue?.message ?? ''}` });
};

const jsonOf = async (context: Context<PlatformEnv>): Promise<unknown> => {
  try {
    return JSON.parse(await context.req.text()) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) throw new Fault('API_BAD_REQUEST', { reason: 'the body is not valid JSON' });
    throw error;
  }
};

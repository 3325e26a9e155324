// The scanner that a message's framing asks for.
import type { BodyScanner } from './body-scanner.ts';
import { ChunkedBody, type ChunkedForm } from './chunked-body.ts';
import type { Framing } from './framing.ts';
import { LengthBody, UntilCloseBody } from './plain-body.ts';

/** null: no body follows. */
export const scannerOf = (framing: Framing, form: ChunkedForm = 'chunks'): BodyScanner | null => {
  switch (framing.kind) {
    case 'none':
      return null;
    case 'length':
      return framing.length === 0 ? null : new LengthBody(framing.length);
    case 'chunked':
      return new ChunkedBody(form);
    case 'until-close':
      return new UntilCloseBody();
  }
};

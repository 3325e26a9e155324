// A link inside of text, to another page before sign-in.
import { createLink } from '@tanstack/react-router';
import type { ComponentProps } from 'react';

const Anchor = (props: ComponentProps<'a'>) => (
  // oxlint-disable-next-line jsx-a11y/anchor-has-content -- its content comes with the rest
  <a {...props} className="rounded-sm font-medium text-accent underline-offset-4 hover:underline" />
);

export const TextLink = createLink(Anchor);

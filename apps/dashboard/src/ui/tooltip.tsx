// More about a word or a number: shown on hover and on focus, and read out with it.
import { type ReactNode, useId } from 'react';

export const Tooltip = ({ text, children }: { readonly text: string; readonly children: ReactNode }) => {
  const id = useId();
  return (
    <span className="group relative inline-flex">
      <button
        type="button"
        aria-describedby={id}
        className="cursor-help rounded-sm underline decoration-edge decoration-dotted underline-offset-4"
      >
        {children}
      </button>
      <span
        id={id}
        role="tooltip"
        className="pointer-events-none invisible absolute bottom-full left-1/2 z-20 mb-2 w-max max-w-64 -translate-x-1/2 whitespace-normal rounded-md bg-ink px-2.5 py-1.5 text-left font-normal text-page text-xs group-focus-within:visible group-hover:visible"
      >
        {text}
      </span>
    </span>
  );
};

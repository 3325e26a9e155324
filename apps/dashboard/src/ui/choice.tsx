// Segmented control: radio buttons in the shape of a bar, for a choice between a few options.
import { useId } from 'react';

export interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly label: string }[];
  readonly onChange: (value: T) => void;
  /** False if only screen readers read the label. */
  readonly showLabel?: boolean;
}

export const Choice = <T extends string>({ label, value, options, onChange, showLabel = false }: ChoiceProps<T>) => {
  const name = useId();
  return (
    <fieldset className="min-w-0">
      <legend className={showLabel ? 'mb-1.5 font-medium' : 'sr-only'}>{label}</legend>
      <div className="inline-flex max-w-full rounded-md border border-line bg-sunken p-0.5">
        {options.map((option) => (
          <label
            key={option.value}
            className="relative rounded-[5px] px-3 py-1 text-center text-muted text-sm hover:text-ink has-checked:bg-surface has-checked:font-medium has-checked:text-ink has-checked:ring-1 has-checked:ring-line has-focus-visible:outline-2 has-focus-visible:outline-accent"
          >
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
              className="absolute inset-0 cursor-pointer opacity-0"
            />
            {option.label}
          </label>
        ))}
      </div>
    </fieldset>
  );
};

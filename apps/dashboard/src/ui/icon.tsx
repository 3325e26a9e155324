// The icons: 16 px, uniform line width, in the color of the adjacent text. Icons never replace text.
const PATHS = {
  overview: 'M2.5 9.5v4h3v-4zM6.5 5.5v8h3v-8zM10.5 2.5v11h3v-11z',
  tunnels: 'M2.5 13V8a5.5 5.5 0 0 1 11 0v5M6 13V8a2 2 0 0 1 4 0v5',
  domains: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2 8h12M8 2c-3.5 3.5-3.5 8.5 0 12 3.5-3.5 3.5-8.5 0-12z',
  names: 'M2.5 2.5h5.5l5.5 5.5-5.5 5.5-5.5-5.5zM5.5 5.5h.01',
  pools: 'M8 2.5v3M8 5.5 3.5 9.5M8 5.5l4.5 4M8 5.5v4M2.5 9.5h2v3h-2zM7 9.5h2v3H7zM11.5 9.5h2v3h-2z',
  keys: 'M10.5 2.5a3 3 0 1 1-2.6 4.5L3 12v1.5h2.5v-2H7L8.5 10M11 5h.01',
  billing: 'M2 4.5h12v8H2zM2 7h12M4.5 10h2',
  settings: 'M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M8.5 3v3M7.5 10v3',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'm3 8.5 3.2 3.2L13 5',
  cross: 'm4 4 8 8M12 4l-8 8',
  chevron: 'm4.5 6.5 3.5 3.5 3.5-3.5',
  right: 'M6 3.5 10.5 8 6 12.5',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
  'eye-off':
    'm2.5 2.5 11 11M6.3 3.8A7 7 0 0 1 8 3.5C12 3.5 14.5 8 14.5 8a11 11 0 0 1-1.8 2.3M9.8 12.2a7 7 0 0 1-1.8.3C4 12.5 1.5 8 1.5 8a11 11 0 0 1 2.7-3.1',
  warning: 'M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.1',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.3v3.5M8 5.2v.1',
  mail: 'M2 3.5h12v9H2zM2 4.5l6 4.5 6-4.5',
  outside: 'M6.5 3.5h-4v10h10v-4M9 2.5h4.5V7M13.5 2.5 7.5 8.5',
  plus: 'M8 3v10M3 8h10',
  replay: 'M3 8a5 5 0 1 1 1.6 3.7M3 12.5V9.5h3',
  stop: 'M3 3h10v10H3z',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2',
  back: 'M10 3.5 5.5 8l4.5 4.5',
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name, className = 'size-4' }: { readonly name: IconName; readonly className?: string }) => (
  <svg
    viewBox="0 0 16 16"
    aria-hidden="true"
    className={`${className} shrink-0`}
    fill="none"
    stroke="currentColor"
    strokeWidth="1.4"
    strokeLinecap="round"
    strokeLinejoin="round"
  >
    <path d={PATHS[name]} />
  </svg>
);

/** Indicates work in progress. Hidden from screen readers, so the spinner needs adjacent text. */
export const Spinner = () => (
  <svg viewBox="0 0 16 16" aria-hidden="true" className="size-4 animate-spin">
    <circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" strokeOpacity="0.25" strokeWidth="1.75" />
    <path
      d="M14.25 8A6.25 6.25 0 0 0 8 1.75"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.75"
      strokeLinecap="round"
    />
  </svg>
);

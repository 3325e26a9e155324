// The sign of the house.

export const Brand = () => (
  <span className="inline-flex items-center gap-2 font-semibold text-lg tracking-tight">
    <svg viewBox="0 0 24 24" aria-hidden="true" className="size-6 shrink-0">
      <rect width="24" height="24" rx="6" className="fill-accent" />
      <path
        d="M6 17v-4a6 6 0 0 1 12 0v4M10 17v-4a2 2 0 0 1 4 0v4"
        fill="none"
        strokeWidth="2"
        strokeLinecap="round"
        className="stroke-on-accent"
      />
    </svg>
    Tunnel
  </span>
);

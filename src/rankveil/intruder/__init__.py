"""The intruder who uses everything: the probability of every link, from all that is public.

- `shared`: the columns of both tables, coded alike;
- `simulation`: releases that the intruder makes himself, by the plan that the manifest tells;
- `model`: what the released columns say about whose they are: recomputed, by a stated likelihood, or learned;
- `fitting`: models of columns without a closed form, fitted to simulated releases;
- `learning`: models without a manifest, by expectation-maximisation;
- `functions`: columns that are a function of the original's, or lost cells, recognised without a manifest;
- `bets`: posterior links and the best bet for every person;
- `calibration`: how often bets of some confidence are right;
- `structure`, `low_bits`, `row_order`: evidence beside the likelihood;
- `finding`: all of it together: who is found.
"""

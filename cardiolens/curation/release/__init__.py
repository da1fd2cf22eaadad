"""A benchmark to hand on: verified questions and studies under new ids, with counts, hashes and a card."""

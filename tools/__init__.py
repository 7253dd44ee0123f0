"""What is run now and then: comparison of two builds, repetition of published tables."""
